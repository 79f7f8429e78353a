"""Records that come out of order, up to a lateness, are in their own panes."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest
from agent_runs import placed, write
from generated_cases import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from local_agent import run
from taking_root import Scoreboard

import millstream as ms
from millstream.agent.log import log_files
from millstream.agent.panes.restart import Restart, restart_from
from millstream.errors import DefinitionError
from millstream.windows.panes.message import PaneManifest
from millstream.windows.panes.pane_ledger import PaneRun, counted, put

Record = tuple[float, str]


def late_job(lateness: str, **more: Any) -> Any:
    logs = ms.windows.Logs(ts="ts", unit="s", lateness=lateness)
    return placed(logs, **more)


def taken(messages: list[Any]) -> tuple[Scoreboard, int, int]:
    """Returns the panes that a root accepted, and the late and missing records in its accounts."""
    board, runs, late, amiss = Scoreboard(), list[PaneRun](), 0, 0
    for message in messages:
        if board.take(json.dumps(message).encode()) and message["until"] > message["pane"]:
            told = msgspec.convert(message["nodes"]["web1"], PaneManifest)
            amiss += abs(put(runs, message["pane"], message["until"], told, 0) - counted(told))
            late += sum(told.late.values())
    return board, late, amiss


def plain(records: list[Record], pane: int = 1) -> dict[tuple[int, str], int]:
    """Records, grouped by pane and word."""
    return Counter((int(ts // pane), word) for ts, line in records for word in line.split())


@st.composite
def disordered(draw: st.DrawFn) -> tuple[int, list[Record]]:
    """A lateness, and records none of which is behind an earlier one by more than that."""
    lateness = draw(st.integers(1, 6))
    times = sorted(draw(st.lists(st.integers(800, 830), min_size=1, max_size=40)))
    delays = draw(st.lists(st.integers(0, lateness), min_size=len(times), max_size=len(times)))
    words = draw(
        st.lists(st.sampled_from(["a", "b a", "c"]), min_size=len(times), max_size=len(times))
    )
    arrivals = sorted(
        zip(times, delays, words, strict=True), key=lambda record: record[0] + record[1]
    )
    return lateness, [(ts, word) for ts, _, word in arrivals]


@settings(max_examples=examples(60), deadline=None)
@given(
    log=disordered(),
    pane=st.sampled_from([1, 2, 5]),
    piece=st.integers(30, 400),
    kills=st.lists(st.integers(0, 4), max_size=3),
    combine=st.sampled_from(["a function", "none", "an algebra"]),
)
def test_any_disorder_up_to_lateness(
    tmp_path_factory: pytest.TempPathFactory,
    log: tuple[int, list[Record]],
    pane: int,
    piece: int,
    kills: list[int],
    combine: str,
) -> None:
    """However the log is cut into pieces and whenever the agent is killed, the panes equal those of
    sorting and grouping, no record is late, and the root's accounts have no residual."""
    lateness, records = log
    folder = tmp_path_factory.mktemp("late")
    combines: Any = {"none": {"combine": None}, "an algebra": {"combine": ms.algebra.count()}}
    more = combines.get(combine, {})
    job = late_job(f"{lateness}s", pane=f"{pane}s", range=f"{4 * pane}s", **more)
    write(folder / "app.log", *records)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log_files, "PIECE", piece)
        for kill in kills:
            run(folder, job, puts=kill)
        messages, status = run(folder, job)
    numbers = {"none": sum, "an algebra": lambda one: one["count"]}.get(combine, int)
    for message in messages:
        message["partials"] = {key: numbers(one) for key, one in message["partials"].items()}
    board, late, amiss = taken(messages)
    assert (late, amiss, status["late"], status["residual"]) == (0, 0, 0, 0)
    assert status["on_time"] == len(records)
    assert board.values == plain(records, pane)


def test_what_is_behind_by_more_is_late(tmp_path: Path) -> None:
    """A record that is of a pane which was ended is late, and told as of that pane."""
    write(tmp_path / "app.log", (100, "a"), (102.9, "b"), (100.9, "c"), (103, "d"), (100.95, "e"))
    messages, status = run(tmp_path, late_job("2s"))
    board, late, amiss = taken(messages)
    assert board.values == {(100, "a"): 1, (100, "c"): 1, (102, "b"): 1, (103, "d"): 1}
    assert (late, amiss, status["late"]) == (1, 0, 1)
    told = [one["nodes"]["web1"]["late"] for one in messages]
    assert [one for one in told if one] == [{"100": 1}]


def test_an_earlier_record_than_the_first(tmp_path: Path) -> None:
    """The node begins at the earliest pane that has a record, not at that of the first line; no
    pane without records is told before it."""
    write(tmp_path / "app.log", (101, "a"), (100, "b"), (104, "c"))
    messages, status = run(tmp_path, late_job("5s"))
    assert (messages[0]["pane"], messages[0]["until"]) == (100, 100)
    assert taken(messages)[0].values == {(100, "b"): 1, (101, "a"): 1, (104, "c"): 1}
    assert status["late"] == 0


def test_dead_letters_and_disorder(tmp_path: Path) -> None:
    """Lines that cannot be read are counted once, before the first record and between others."""
    log = tmp_path / "app.log"
    log.write_text("no json\n")
    write(log, (101, "a"), (100, "b"))
    with log.open("a") as file:
        file.write("nor this\n")
    write(log, (103, "c"))
    for puts in (0, 1, 2):
        run(tmp_path, late_job("1s"), puts=puts)
    messages, status = run(tmp_path, late_job("1s"))
    board, late, amiss = taken(messages)
    assert (status["dead"], status["on_time"], status["residual"], late, amiss) == (2, 3, 0, 0, 0)
    assert sum(board.values.values()) == 3


def test_lateness_is_taken_back(tmp_path: Path) -> None:
    """A job that is given no lateness any more goes on with the panes that were open."""
    log = tmp_path / "app.log"
    write(log, (100, "a"), (103, "b"), (102, "c"), (105, "d"), (104, "e"))
    run(tmp_path, late_job("2s"), puts=1)
    messages, status = run(tmp_path, late_job("0s"))
    board, late, amiss = taken(messages)
    assert (late, amiss, status["residual"]) == (1, 0, 0)
    assert board.values == {(100, "a"): 1, (102, "c"): 1, (103, "b"): 1, (105, "d"): 1}


def test_a_restart_point_of_before() -> None:
    """A restart point without open panes is read, and one without any is written in the old
    form."""
    before = Restart(pane=7, read=3).described()
    assert "open" not in before
    assert restart_from(before).pane == 7
    assert restart_from(before).open == []


def test_a_stored_restart_point() -> None:
    """Restart points of earlier versions are read, and written again in the same form. One with
    unknown fields is refused, since it is of a later version."""
    mark = {"id": "8:1", "name": "app.log", "head": "3:9", "offset": 3, "tail": "3:9", "size": 3}
    stored = {
        "pane": 7,
        "position": [{**mark, "done": False, "written": 5, "first": None}],
        "read": 3,
        "read_bytes": 30,
        "outside": 0,
        "counts": {"on_time": 2, "late": 1, "shed": 0, "dead": 0},
        "letters": [0, 0, 0],
        "gaps": 0,
        "told": {"8": [9, 1, 0, 0, 0]},
        "over": None,
        "shed_why": {"cancelled": 4},
        "gap_to": None,
    }
    restart = restart_from(stored)
    assert (restart.counts.late, restart.position[0].offset) == (1, 3)
    assert restart.described() == stored
    with pytest.raises(ms.StoreError, match="of another version"):
        restart_from({**stored, "later": 1})


@pytest.mark.parametrize(
    ("logs", "job", "said"),
    [
        ({"lateness": "2s"}, {}, "ts must name the field"),
        ({"ts": "t", "lateness": "2"}, {}, "must be a duration"),
        ({"ts": "t", "lateness": "2s"}, {"by": "records", "range": 4}, "if by is 'records'"),
        ({"ts": "t", "lateness": "2s"}, {"fidelity": ms.windows.Error(0.1)}, "fidelity is Error"),
        (
            {"ts": "t", "jump": "1h"},
            {"fidelity": ms.windows.Error(0.1)},
            "jump must be left out if",
        ),
        ({"ts": "t", "lateness": "2h"}, {"pane": "1s"}, "at most 1,000 panes"),
        ({"ts": "t", "lateness": "2s"}, {"latency": "2s"}, "shorter than the job's latency"),
    ],
)
def test_what_lateness_is_refused(logs: Any, job: Any, said: str) -> None:
    """It must be a duration, and the job's panes must be able to stay open for so long."""
    given = {"map": len, "combine": ms.algebra.count(), "range": "4s", **job}
    app = ms.App("late")
    with pytest.raises(DefinitionError, match=said):
        app.add(ms.windows.Job(**given), name="n", nodes=["web1"], logs=ms.windows.Logs(**logs))
