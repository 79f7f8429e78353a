"""The end of an agent: its messages to the root, its output, and its last status."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from agent_runs import messages, once, placed, running, until, write
from local_agent import run
from taking_root import Root

import millstream as ms
from millstream.errors import RunError

APP = Path(__file__).with_name("words.py")


def account(root: Root) -> tuple[int, int]:
    """Returns the root's account: records read, and dead letters."""
    told = manifests(root)
    return max(one["total"] for one in told), sum(one["dead"] for one in told)


def manifests(root: Root) -> list[dict[str, Any]]:
    """Returns the manifests of the panes that the root was told of."""
    return [one["nodes"]["web1"] for one in messages(root) if one["pane"] < one["until"]]


@pytest.mark.parametrize("by", [{}, {"by": "sequence", "sequence": "ts", "range": 4, "pane": 1}])
def test_a_log_of_dead_letters(tmp_path: Path, log: Path, root: Root, by: dict[str, Any]) -> None:
    """The root is told of all of them, though none has said when it was; so is the user, at the
    first one and at the end, and where they are."""
    log.write_text("no json\n" * 2_001)
    with running(tmp_path, root, placed(**by), once=True) as agent:
        status = agent.ended()
    assert account(root) == (2_001, 2_001)
    assert (status["dead"], status["residual"]) == (2_001, 0)
    marks = [(one["mark"], one["why"]) for one in manifests(root) if one["dead"]]
    assert {*marks} == {("lost", "unreadable")}
    first = [line for line in agent.said if "the first dead letter is" in line]
    assert len(first) == 1
    assert "app.log, byte 0" in first[0]
    end = [line for line in agent.said if line.startswith("2,001 dead letters")]
    assert "dead-letters.jsonl" in end[0]


def test_the_last_status(tmp_path: Path, log: Path, root: Root) -> None:
    """The last status shows the state at the end: nothing waits, and the agent has ended."""
    write(log, (100, "a"))
    with running(tmp_path, root, placed(), once=True) as agent:
        agent.ended()
        told = agent.told()
    assert (told["ended"], told["outbox_bytes"], told["unsent"], told["to"]) == (True, 0, 0, "root")
    assert (told["read"], told["on_time"], told["log_at_end"]) == (1, 1, True)


def test_stopped_before_the_root_has_it_all(tmp_path: Path, log: Path, root: Root) -> None:
    """With `--once` the agent fails and says what is left. An agent that follows a log does not
    fail."""
    write(log, (100, "a"), (101, "b"))
    root.answers.extend([503] * 1_000)
    with running(tmp_path, root, placed(range="1s"), once=True) as agent:
        until(lambda: agent.told().get("outbox_bytes") and agent.told()["log_at_end"])
        agent.stop.set()
        with pytest.raises(RunError, match=r"2 panes are not sent; .*start it again"):
            agent.ended()
        assert (agent.told()["unsent"], agent.told()["ended"]) == (2, True)
    with running(tmp_path, root, placed(range="1s")) as agent:
        until(lambda: agent.told().get("outbox_bytes"))
        agent.stop.set()
        agent.ended()
    assert [line for line in agent.said if "panes are not sent" in line and "wait in" in line]
    root.answers.clear()
    once(tmp_path, root, placed(range="1s"))
    assert root.board.values == {(100, "a"): 1, (101, "b"): 1}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_while_no_root_runs(tmp_path: Path, log: Path, number: int) -> None:
    """The process of `--once` does not end well then."""
    log.write_text(json.dumps({"time": 100, "line": "a"}) + "\n")
    given = ["agent", str(APP), "--node", "web1", "--log", str(log), "--once", "--state", "state"]
    agent = subprocess.Popen(
        [sys.executable, "-m", "millstream.cli.main", *given, "--root", "http://127.0.0.1:9"],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
    )
    status = tmp_path / "state" / "status.json"
    until(lambda: status.exists() and json.loads(status.read_text())["log_at_end"])
    agent.send_signal(number)
    said = agent.communicate(timeout=30)[1]
    assert agent.returncode == 1
    assert "error: 1 pane is not sent; " in said.splitlines()[-1]
    assert "start it again" in said.splitlines()[-1]


def test_records_of_windows_that_are_closed(tmp_path: Path, log: Path, root: Root) -> None:
    """An agent that reads a log again with a new state is told why its records do not count."""
    job = placed(by="sequence", sequence="ts", range=4, pane=1)
    root.told += [{"closed": window, "reducer": "1/0", "of": 1} for window in range(24, 30)]
    with running(tmp_path, root, job) as agent:
        until(lambda: agent.told().get("waiting_for_files"))
        time.sleep(0.7)  # the root is asked twice a second
        write(log, *((100 + number, "a") for number in range(8)))
        until(lambda: agent.told().get("shed_why") == {"cancelled": 8})
        agent.stop.set()
        agent.ended()
    why = [line for line in agent.said if "8 records shed" in line]
    assert "their windows were already closed: is " in why[0]
    assert why[0].endswith("the right --state?")


def test_why_is_known_after_a_restart(tmp_path: Path, log: Path, root: Root) -> None:
    """Records that were shed in a run before are among those of the reason."""
    job = placed(range="20s", fidelity=ms.windows.Area(0.5, drawn=True))
    write(log, *((100 + number / 2, "a") for number in range(40)))
    first = once(tmp_path, root, job)
    assert first["shed_why"] == {"drawn": first["shed"]}
    write(log, *((120 + number / 2, "a") for number in range(40)))
    second = once(tmp_path, root, job)
    assert second["shed"] > first["shed"]
    assert second["shed_why"] == {"drawn": second["shed"]}


def test_a_parent_that_goes_and_comes_back(tmp_path: Path, log: Path, root: Root) -> None:
    """The status says which way panes go, and why none go only if none do; the log says once that
    they go to the root, and once that they go by the parent again."""
    parent = Root()
    port = parent.port
    parent.stop()
    write(log, (time.time(), "a"))
    job = placed(range="1s")
    way = ("web2", f"http://127.0.0.1:{port}")
    with running(tmp_path, root, job, parent=way) as agent:
        until(lambda: root.board.values)
        until(lambda: agent.told().get("to") == "root" and not agent.told()["sending_paused"])
        back = Root(port)
        # What a parent takes it sends on: here the test does.
        back.told = root.told
        until(lambda: agent.told()["to"] == "parent web2", 30)
        said = [*agent.said]
    back.stop()
    assert len([line for line in said if "panes go to the root now" in line]) == 1
    assert len([line for line in said if "again, not to the root" in line]) == 1


def test_a_parent_says_whom_it_serves(tmp_path: Path, log: Path, root: Root) -> None:
    """At its start where it listens and for whom; in its status, how far its children are."""
    write(log, (time.time(), "a"))
    more = {"serve": "127.0.0.1:0", "children": ("web2",)}
    with running(tmp_path, root, placed(), **more) as agent:
        until(lambda: agent.told().get("children") == {"web2": None})
    assert [one for one in agent.said if "listens at 127.0.0.1:" in one and "web2" in one]


def test_dead_letters_before_the_first_record(tmp_path: Path, log: Path, root: Root) -> None:
    """Lines such as a table's header count once, even if the agent is stopped in its first pane."""
    log.write_text("a head\n")
    write(log, (time.time(), "a"))
    job = placed(range="60s", pane="60s")
    with running(tmp_path, root, job) as agent:
        until(lambda: agent.told().get("on_time") == 1)
    status = once(tmp_path, root, job)
    assert (status["read"], status["on_time"], status["dead"], status["residual"]) == (2, 1, 1, 0)
    assert account(root) == (2, 1)
    assert status["dead_letters"]["kept"] == 1


def overs(root: Root) -> list[int]:
    """The panes from which on the agent has said that nothing comes."""
    return [one["pane"] for one in messages(root) if one.get("over")]


def test_the_end_of_a_log_is_told_once(tmp_path: Path, log: Path, root: Root) -> None:
    """After the last pane comes a message without panes that reports the end. It is not repeated
    after a restart without new lines. With more lines the agent continues after it, and reports the
    end again."""
    job = placed(range="1s")
    write(log, (100, "a"), (101, "b"))
    once(tmp_path, root, job)
    last = messages(root)[-1]
    assert (last["pane"], last["until"], last["partials"], last["over"]) == (102, 102, {}, True)
    assert last["nodes"]["web1"]["total"] == 2
    once(tmp_path, root, job)
    assert overs(root) == [102]
    write(log, (102, "c"), (103, "d"))
    once(tmp_path, root, job)
    assert overs(root) == [102, 104]
    assert root.board.values == {(100, "a"): 1, (101, "b"): 1, (102, "c"): 1, (103, "d"): 1}


def test_an_empty_log_ends_before_every_pane(tmp_path: Path, log: Path, root: Root) -> None:
    """The end is reported once. Later lines may have any time, and none is lost."""
    job, before = placed(range="1s"), -placed(range="1s").job.span.furthest
    log.write_text("")
    once(tmp_path, root, job)
    once(tmp_path, root, job)
    assert overs(root) == [before]
    write(log, (100, "a"))
    assert once(tmp_path, root, job)["on_time"] == 1
    assert overs(root) == [before, 101]
    assert root.board.values == {(100, "a"): 1}


def test_killed_before_the_end_was_told(tmp_path: Path, log: Path) -> None:
    """The next one tells it, and no pane is told twice or made up."""
    write(log, (100, "a"), (101, "b"))
    job = placed(range="1s")
    for puts in (0, 1, 2, 3):
        sent, _ = run(tmp_path, job, puts=puts)
    panes = [one["pane"] for one in sent if one["until"] > one["pane"]]
    assert panes == [100, 101]
    assert [one["pane"] for one in sent if one.get("over")] == [102]


def test_a_log_that_is_followed_does_not_end(tmp_path: Path, log: Path, root: Root) -> None:
    """Without --once nothing is said of an end."""
    write(log, (time.time() - 5, "a"))
    with running(tmp_path, root, placed(range="1s")):
        until(lambda: root.board.values)
    assert overs(root) == []


@pytest.mark.parametrize("by", [{"by": "records", "range": 3}, {"by": "bytes", "range": "80B"}])
@pytest.mark.parametrize("extent", [{}, {"begin": 0, "extent": 900}])
def test_a_pane_of_counts_that_the_end_has_cut_off(
    tmp_path: Path, log: Path, root: Root, by: dict[str, Any], extent: dict[str, Any]
) -> None:
    """The last pane is reported as possibly not full. No other pane is."""
    write(log, *((second, "a") for second in range(100, 107)))
    once(tmp_path, root, placed(**by, pane=by["range"], **extent, logs=ms.windows.Logs()))
    told = [one["nodes"]["web1"] for one in messages(root)]
    *before, last = [one.get("cut", False) for one in told if one["records"]]
    assert (bool(before), any(before), last) == (True, False, True)
    assert sum(one["records"] for one in told) == 7


def test_a_pane_of_time_is_not_cut_off(tmp_path: Path, log: Path, root: Root) -> None:
    """Its lines say when they are, whether the log goes on or not."""
    write(log, *((second, "a") for second in range(100, 107)))
    once(tmp_path, root, placed())
    assert not any("cut" in one["nodes"]["web1"] for one in messages(root))
