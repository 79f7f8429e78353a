"""An agent from log to root: what is sent, in every kind of trouble, is each record once."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from typing import Any

import agent_runs as runs
import pytest
from agent_runs import manifests, messages, once, placed, running, until, write
from taking_root import Root

import millstream as ms
from millstream.agent import limits
from millstream.agent.delivery.outbox import Outbox
from millstream.agent.limits import Limits
from millstream.agent.options import AgentOptions, jobs_of
from millstream.agent.panes import pane_room
from millstream.agent.surroundings import Surroundings
from millstream.errors import CommandError, DefinitionError, StoreError, StoreLocked


def values(root: Root) -> dict[tuple[int, str], int]:
    return root.board.values


def test_a_log_becomes_panes(tmp_path: Path, log: Path, root: Root) -> None:
    """Each record is in the pane of its time. Panes without records are reported. The end of the
    log ends the last pane, and is reported."""
    write(log, (100, "a b"), (100.5, "a"), (102, "c"), (101, "late"))
    with log.open("a") as file:
        file.write("no json\n")
    status = once(tmp_path, root, placed(slide="2s"))
    panes = [(one["pane"], one["until"], one["partials"]) for one in messages(root)]
    assert panes == [
        (100, 100, {}),
        (100, 101, {"a": 2, "b": 1}),
        (101, 102, {}),
        (102, 103, {"c": 1}),
        (103, 103, {}),
    ]
    told = messages(root)[3]["nodes"]["web1"]
    assert (told["records"], told["late"], told["dead"], told["total"]) == (1, {"101": 1}, 1, 5)
    counts = {name: status[name] for name in ("read", "on_time", "late", "shed", "dead")}
    assert counts == {"read": 5, "on_time": 3, "late": 1, "shed": 0, "dead": 1}
    assert status["residual"] == 0
    letter = json.loads((tmp_path / "state" / "dead-letters.jsonl").read_text())
    assert letter["line"] == "no json"


def test_two_logs_of_a_node(tmp_path: Path, root: Root) -> None:
    """Logs that were written side by side are read side by side: no record is late."""
    for number in range(300):
        write(tmp_path / f"app.log.{'ab'[number % 2]}", (100 + number / 50, "w"))
    status = once(tmp_path, root, placed())
    assert (status["on_time"], status["late"]) == (300, 0)


def test_started_again_it_goes_on(tmp_path: Path, log: Path, root: Root) -> None:
    """A second run over the same log sends nothing; over a longer one, only what is new."""
    write(log, (100, "a"))
    once(tmp_path, root, placed(range="1s"))
    before = len(root.posts)
    once(tmp_path, root, placed(range="1s"))
    assert len(root.posts) == before
    write(log, (105, "b"))
    status = once(tmp_path, root, placed(range="1s"))
    assert values(root) == {(100, "a"): 1, (105, "b"): 1}
    assert status["read"] == 2
    assert root.board.repeated == 0


def test_a_log_that_is_idle_ends_its_panes(tmp_path: Path, log: Path, root: Root) -> None:
    """Without new records panes end by the clock; a node without any records begins at now."""
    now = int(time.time())
    with running(tmp_path, root, placed(range="1s")) as agent:
        until(lambda: root.board.panes)
        write(log, (time.time() + 0.3, "a"))
        until(lambda: values(root))
        assert not agent.told().get("paused")
    first = messages(root)[0]
    assert first["pane"] == first["until"]
    assert now <= first["pane"] <= now + 5
    panes = sorted(pane for _, pane in root.board.panes)
    assert panes == list(range(panes[0], panes[-1] + 1))


def test_records_that_bring_no_time(tmp_path: Path, log: Path, root: Root) -> None:
    """Records without a time get the time at which they were first seen, also if the agent restarts
    before their pane has ended."""
    log.write_text("a\nb\n")
    job = placed(ms.windows.Logs(format="text"), range="2s", pane="2s")
    with running(tmp_path, root, job):
        until((tmp_path / "state" / "stamps.jsonl").exists)
        until((tmp_path / "state" / "stamps.jsonl").read_text)
    stamp = json.loads((tmp_path / "state" / "stamps.jsonl").read_text().split(" ", 1)[1])[2]
    until(lambda: time.time() > stamp / 1e6 + 2.5)
    with running(tmp_path, root, job):
        until(lambda: values(root))
    pane = stamp // 2_000_000
    assert values(root) == {(pane, "a"): 1, (pane, "b"): 1}


@pytest.mark.parametrize("by", [{"by": "records", "range": 4, "pane": 2}, {"by": "bytes"}])
def test_panes_by_count(tmp_path: Path, log: Path, root: Root, by: dict[str, Any]) -> None:
    """A node's log cut into panes of so many records or bytes, from its beginning on."""
    write(log, *((1, f"w{number}") for number in range(5)))
    size = len(log.read_bytes()) // 5
    if by["by"] == "bytes":
        by = {**by, "range": 4 * size, "pane": 2 * size}
    once(tmp_path, root, placed(**by))
    panes = [(one["pane"], one["until"], sorted(one["partials"])) for one in messages(root)]
    assert panes[:4] == [
        (0, 0, []),
        (0, 1, ["w0", "w1"]),
        (1, 2, ["w2", "w3"]),
        (2, 3, ["w4"]),
    ]


def test_panes_that_are_not_drawn(tmp_path: Path, log: Path, root: Root) -> None:
    """Half of the panes are drawn by the seed. In the others, records are only counted."""
    write(log, *((100 + number / 2, "a") for number in range(40)))
    job = placed(range="20s", fidelity=ms.windows.Area(0.5, drawn=True))
    status = once(tmp_path, root, job)
    lost = [one for one in manifests(root) if one[1] == "lost"]
    assert len(lost) == 10
    assert {one[2:] for one in lost} == {("drawn", 0, 2)}
    assert (status["on_time"], status["shed"], status["residual"]) == (20, 20, 0)


def test_panes_that_nobody_wants(tmp_path: Path, log: Path, root: Root) -> None:
    """A pane all of whose windows the root has closed is not made; the others are."""
    root.told += [{"closed": window, "reducer": "1/0", "of": 1} for window in (25, 26)]
    job = placed(by="sequence", sequence="ts", range=4, pane=1)
    with running(tmp_path, root, job) as agent:
        until(lambda: agent.told().get("waiting_for_files"))
        time.sleep(0.7)  # the root is asked twice a second
        write(log, *((100 + number, "a") for number in range(12)))
        until(lambda: ("web1", 110) in root.board.panes)
    made = {one[0]: one[1:3] for one in manifests(root) if one[0] >= 100}
    assert made[101] == made[107] == ("lost", "cancelled")
    assert made[108] == ("data", None)


def test_flow_control(tmp_path: Path, log: Path, root: Root) -> None:
    """While the root takes nothing the outbox fills, then reading waits; then all goes out."""
    root.answers.extend([503] * 4)
    write(log, *((100 + number, f"w{number} " * 50) for number in range(200)))
    with running(tmp_path, root, placed(range="1s"), once=True, buffer=3_000) as agent:
        until(lambda: "buffer" in str(agent.told().get("paused")))
        status = agent.ended()
    assert status["on_time"] == sum(values(root).values()) / 50 == 200
    assert [line for line in agent.said if "reading is paused, buffer" in line]


def test_a_full_disk(
    tmp_path: Path, log: Path, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading waits until there is room again, with one message, and nothing is lost."""
    monkeypatch.setattr(limits, "AGAIN", 0.05)
    put, full = Outbox.put, [True] * 5

    def no_room(outbox: Outbox, entries: Any) -> None:
        if full:
            full.pop()
            raise StoreError("a pane cannot be kept: no space left")
        put(outbox, entries)

    monkeypatch.setattr(Outbox, "put", no_room)
    write(log, (100, "a"), (101, "b"))
    with running(tmp_path, root, placed(range="1s"), once=True) as agent:
        agent.ended()
    assert values(root) == {(100, "a"): 1, (101, "b"): 1}
    assert len([line for line in agent.said if "no space left" in line]) == 1


def test_memory(tmp_path: Path) -> None:
    """Over the limit the agent waits until panes are sent. If none waits, it gives up the current
    pane. If that does not help, it raises the limit and says so."""
    outbox, said = Outbox(tmp_path, 1_000, print), list[str]()
    used = [100]
    around = Surroundings(said.append, Event(), lambda: None, time.monotonic, time.time_ns)
    limit = Limits(50, around, used=lambda: used[0])
    limit.outboxes.append(outbox)
    assert not limit.fits()
    limit.made_room()
    assert "the limit is now 112 bytes" in said[-1]
    assert limit.fits()
    used[0] = 113
    assert not limit.fits()


def test_an_application_that_takes_more_than_the_limit(
    tmp_path: Path, log: Path, root: Root
) -> None:
    """Memory that is resident before the first pane does not count: no pane is given up for it."""
    write(log, (100, "a"))
    with running(tmp_path, root, placed(range="1s"), once=True, memory=1) as agent:
        assert agent.ended()["on_time"] == 1
    assert [line for line in agent.said if "set a higher one with --memory" in line]


def test_a_pane_that_does_not_fit(
    tmp_path: Path, log: Path, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pane is given up and reported as lost, with its number of records."""
    monkeypatch.setattr(pane_room, "MEASURED", 0.0)
    monkeypatch.setattr(Limits, "fits", lambda limit: False)
    write(log, (100, "a"), (100, "b"), (101, "c"))
    status = once(tmp_path, root, placed(range="1s"))
    lost = [one for one in manifests(root) if one[1] == "lost"]
    assert {one[2] for one in lost} == {"memory"}
    assert status["shed"] > 0
    assert status["residual"] == 0


def test_a_line_that_is_too_long(tmp_path: Path, log: Path, root: Root) -> None:
    """The line is a dead letter, whatever its content, and the lines after it are read."""
    write(log, (100, "a"), (100, "x" * (1 << 20)), (100, "b"))
    status = once(tmp_path, root, placed())
    assert (status["on_time"], status["dead"], status["residual"]) == (2, 1, 0)


def test_a_gap_is_told(tmp_path: Path, log: Path, root: Root) -> None:
    """A log that went away unread is said, kept with the dead letters and counted."""
    write(log, (100, "a"), (101, "b"))
    job = placed(range="1s")
    once(tmp_path, root, job)
    log.unlink()
    write(tmp_path / "app.log2", (102, "c"))
    with running(tmp_path, root, job, once=True) as agent:
        status = agent.ended()
    assert status["gaps"] == 1
    assert [line for line in agent.said if line.startswith("gap in the log")]
    assert "it is gone" in (tmp_path / "state" / "dead-letters.jsonl").read_text()


def test_the_rest_of_the_extent(tmp_path: Path, log: Path, root: Root) -> None:
    """A log that ends before the job's extent does has nothing in the rest of it."""
    write(log, (98, "before"), (100, "a"))
    job = placed(range="1s", begin=99_000_000, extent="6s")
    status = once(tmp_path, root, job)
    assert [(one["pane"], one["until"]) for one in messages(root)] == [
        (99, 99),
        (99, 100),
        (100, 101),
        (101, 105),
        (105, 105),
    ]
    assert (status["on_time"], status["outside"]) == (1, 1)


def test_files_that_are_not_read_are_named(tmp_path: Path, log: Path, root: Root) -> None:
    """A compressed file that cannot be read is said once, and not taken for lines."""
    write(log, (100, "a"))
    (tmp_path / "app.log.1.zst").write_bytes(b"\x28\xb5\n")
    with running(tmp_path, root, placed(range="1s"), once=True) as agent:
        status = agent.ended()
    assert [line for line in agent.said if "app.log.1.zst is compressed" in line]
    assert (status["read"], status["dead"]) == (1, 0)


def test_one_agent_for_a_state(tmp_path: Path, log: Path, root: Root) -> None:
    """A second agent with the same state is refused, and one of another node or other panes."""
    write(log, (100, "a"))
    with running(tmp_path, root, placed()):
        until((tmp_path / "state" / "agent.json").exists)
        with pytest.raises(StoreLocked, match=f"process {os.getpid()}"):
            once(tmp_path, root, placed())
    for other in ({"node": "web2"}, {"pane": "2s"}):
        job = placed(**{key: value for key, value in other.items() if key == "pane"})
        more = {key: value for key, value in other.items() if key == "node"}
        what = "this state belongs to job counts node web1" if more else "were 1s and are 2s now"
        with pytest.raises(StoreError, match=what):
            once(tmp_path, root, job, **more)


def test_once_without_a_file(tmp_path: Path, root: Root) -> None:
    """A log that is not there is waited for, and with once it is an error."""
    with pytest.raises(CommandError, match="no file matches"):
        once(tmp_path, root, placed())
    with running(tmp_path, root, placed()) as agent:
        until(lambda: [line for line in agent.said if "waiting for one" in line])


def test_which_job() -> None:
    """Without a name all that have the node; a wrong name of a job or node is answered with the
    nearest; a job without logs is refused."""
    app = ms.App("shop")
    job = ms.windows.Job(map=runs.words, combine=runs.add, range="1s")
    app.source("web1")
    app.add(job, name="streamed", nodes=["web1"])
    with pytest.raises(DefinitionError, match="no job that takes panes from agents"):
        jobs_of(app, [], "web1")
    for name in ("errors", "visits"):
        app.add(job, name=name, nodes=["web1", "web2"], logs=ms.windows.Logs(ts="ts"))
    app.add(job, name="others", nodes=["web2"], logs=ms.windows.Logs(ts="ts"))
    assert [one.name for one in jobs_of(app, [], "web1")] == ["errors", "visits"]
    with pytest.raises(CommandError, match="no job of app 'shop' has a node 'wbe2'; did you mean"):
        jobs_of(app, [], "wbe2")
    with pytest.raises(CommandError, match="did you mean 'errors'"):
        jobs_of(app, ["eror"], "web1")
    with pytest.raises(CommandError, match="did you mean 'web2'"):
        jobs_of(app, ["errors"], "wbe2")
    with pytest.raises(CommandError, match="makes its panes from streams"):
        jobs_of(app, ["streamed"], "web1")
    assert [one.name for one in jobs_of(app, ["visits"], "web2")] == ["visits"]


@pytest.mark.parametrize("root", ["", "root:8470", "ftp://root", "http://"])
def test_the_address_of_the_root(tmp_path: Path, root: str) -> None:
    """An invalid address is refused before anything is read."""
    with pytest.raises(CommandError, match="--root must be the address of a server"):
        AgentOptions(node="web1", patterns=("x",), root=root, state=tmp_path)


def test_work_that_would_be_late_is_shed(tmp_path: Path, log: Path, root: Root) -> None:
    """With a slow map and a short latency some panes are given up in time, and all are told."""

    def slow(record: Any) -> Iterator[tuple[str, int]]:
        time.sleep(0.02)
        yield record["line"], 1

    root.told.append({"opened": 0})
    write(log, *((1, "a") for _ in range(200)))
    job = placed(map=slow, by="records", range=200, pane=20, latency="2s")
    with running(tmp_path, root, job) as agent:
        until(lambda: ("web1", 9) in root.board.panes or agent.told().get("read") == 200)
        until(lambda: agent.told().get("read") == 200)
        status = agent.told()
    assert 0 < status["shed"] < 200
    assert status["on_time"] + status["shed"] == 200
    assert {one[2] for one in manifests(root) if one[1] == "lost"} == {"shed"}
