"""Stores of earlier versions: a job continues with their contents, and counts nothing twice."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from engine.in_process import InProcess
from engine.outcome import of_engine
from windows.messages import a_job, an_app, events, told

import millstream as ms
from millstream.codec import decode_value
from millstream.model.event import Event
from millstream.model.slate import Table
from millstream.server.jobs.job_tables import SHOWN
from millstream.windows.accounts import residual
from millstream.windows.job_view import shown
from millstream.windows.placed import job_parts

JOB = a_job()
NODES = ("a", "b")
FIRST = 1 << 62
BEGINNING = -FIRST


def mark(records: int) -> list[Any]:
    return ["data", records, records, "", 0, 0, 0, 0, records, 0, 0, 0]


def window(**counts: Any) -> dict[str, Any]:
    empty = dict.fromkeys(("received", "lost", "whole", "hurt", "some", "read", "on_time"), 0)
    rest = dict.fromkeys(("late", "shed", "dead", "bytes", "unsized", "looked", "corrections"), 0)
    empty |= dict.fromkeys(("included", "included_bytes"), 0)
    return {
        **empty,
        **rest,
        "after": [],
        "late_part": 0.0,
        "drawn": 0.0,
        "nodes": {},
        "why": "",
        "coverage": {},
        "completeness": {},
        **counts,
    }


ROOT: dict[str, Any] = {
    "account|a": {"read": 5, "on_time": 5, "late": 0, "shed": 0, "dead": 0},
    "account|b": {"read": 2, "on_time": 2, "late": 0, "shed": 0, "dead": 0},
    f"board|{FIRST + 2:020d}": {"a": mark(1)},
    f"board|{FIRST + 3:020d}": {"a": mark(1)},
    "meta": {
        "at": {"a": 4, "b": 2},
        "closed": [[0, 1]],
        "final": True,
        "first": 0,
        "forgot": -99,
        "from": {"a": 0, "b": 0},
        "kept": 2,
        "late": 0,
        "late_panes": 0,
        "late_records": 0,
        "nodes": ["a", "b"],
        "open": [1, 2],
        "read": 7,
        "repeated": 0,
        "schedule": [[BEGINNING, 1]],
        "swept": 2,
    },
    f"pane|{FIRST + 2:020d}|a": {"y": 1},
    f"pane|{FIRST + 3:020d}|a": {"y": 1},
    f"past|{FIRST:020d}": {"a": mark(2), "b": mark(1)},
    f"past|{FIRST + 1:020d}": {"a": mark(1), "b": mark(1)},
    f"tardy|{FIRST + 2:020d}": {"b": 1},
    f"window|{FIRST:020d}": window(received=4, whole=2, some=2, read=5, on_time=5, why="complete"),
    f"window|{FIRST + 1:020d}": window(received=2, some=2, read=2, on_time=2, bytes=2),
    f"window|{FIRST + 2:020d}": window(),
}
"""The table of an earlier version with panes 0 to 3 of a and 0 and 1 of b, in windows of two panes.
b has found a late record of its pane 2, which it had not sent."""


@dataclass
class Agreed:
    """The slate of `counts.reducers` as it was."""

    defined: int = 0
    schedule: list[list[int]] = field(default_factory=list)
    trees: dict[str, int] = field(default_factory=dict)


def left() -> InProcess:
    """An engine whose store has what the earlier version left."""
    app = ms.App("logs")
    app.source("set")

    @app.update("set", slate=Table, name="counts.root")
    def root(event: Event, table: Table) -> None:
        for entry, value in ROOT.items():
            table[entry] = value

    @app.update("set", slate=Agreed, name="counts.reducers")
    def reducers(event: Event, agreed: Agreed) -> None:
        agreed.defined, agreed.trees = 1, {"a": 4}
        agreed.schedule = [[BEGINNING, 1]]

    engine = InProcess(app.workflow(), 1)
    engine.batch([Event("set", 1, "1/0", 0), Event("set", 2, "", 0)])
    return engine


def going_on() -> InProcess:
    before = left()
    app = an_app(JOB, nodes=NODES)
    return InProcess(app.workflow(), 1, store=before.store, progress=before.progress, epoch=2)


def table_of(engine: InProcess, update: str, key: str) -> dict[str, Any]:
    prefix = f"E{update}\0{key}\0\0".encode()
    return {
        row[len(prefix) :].decode(): decode_value(value)
        for (_, row), value in of_engine(engine).rows.items()
        if row.startswith(prefix) and value is not None
    }


A = told(JOB, "a", {0: "xx", 1: "x", 2: "y", 3: "y"}, begin=0)
B = told(JOB, "b", {0: "z", 1: "z", 2: "q", 3: "qq"}, begin=0)


def test_a_window_that_was_open_gets_its_last_panes() -> None:
    """Panes that are there are not needed again. The window is closed with all of them. That a
    record of one came late counts, although the earlier version did not tell such panes apart."""
    engine = going_on()
    engine.batch(events(B[3:]))
    (summary,) = engine.streams["counts.windows"]
    assert (summary.value["from"], summary.value["why"]) == (2, "late")
    assert summary.value["coverage"]["area"] == 0.75
    assert summary.value["coverage"]["missing"] == {"late": 1}
    assert {one.key: one.value["value"] for one in engine.streams["counts"]} == {"y": 2, "q": 3}
    assert summary.value["accounts"]["b"]["late"] == 1
    assert engine.letters == []


def test_panes_that_were_taken_before_are_not_taken_again() -> None:
    """Agents repeat panes of whose acceptance they were not told. Panes on the board, or dropped a
    short while ago, are known although they are not in the new ledger."""
    engine = going_on()
    engine.batch(events([*A[1:], *B[1:]]))
    assert {one.key: one.value["value"] for one in engine.streams["counts"]} == {"y": 2, "q": 3}
    table = table_of(engine, "counts.root", "1/0")
    assert table["meta"]["repeated"] == 6
    for node, read in (("a", 5), ("b", 5)):
        assert (table[f"account|{node}"]["read"], residual(table[f"account|{node}"])) == (read, 0)


def test_an_agent_that_is_started_again_goes_on() -> None:
    """It reports its position, and has read records before. So it is absent nowhere, although the
    ledger has no pane of it. An agent that has read nothing begins there."""
    engine = going_on()
    at = {**B[0], "pane": 3, "until": 3, "nodes": {"b": {**B[0]["nodes"]["b"], "total": 3}}}
    engine.batch(events([at]))
    assert "counts.windows" not in engine.streams
    engine.batch(events(B[3:], ts=9_000))
    assert [one.value["why"] for one in engine.streams["counts.windows"]] == ["late"]
    engine = going_on()
    engine.batch(events([{**B[0], "pane": 4, "until": 4}]))
    assert [one.value["why"] for one in engine.streams["counts.windows"]] == ["failure"]


def test_a_change_of_reducers_is_beyond_what_the_trees_had_reached() -> None:
    """Windows that were open keep their number."""
    engine = going_on()
    engine.batch(events([{"reducers": 2}, *B[3:]]))
    assert {one.value["reducer"] for one in engine.streams["counts.windows"]} == {"1/0"}
    (said,) = engine.streams["counts.schedule"]
    assert said.value["schedule"] == [[BEGINNING, 1], [5, 2]]


def test_it_is_shown_as_it_was() -> None:
    """Also before anything new has come."""
    part = job_parts({"counts": an_app(JOB, nodes=NODES).parts["counts"].described()})["counts"]
    entries = {name: value for name, value in ROOT.items() if name.startswith(SHOWN)}
    view = shown("counts", part, {"1/0": entries}, 1)
    assert [one.window for one in view.windows] == [1, 0]
    assert [(one.pane, one.nodes["b"].mark) for one in view.panes] == [
        (0, "data"),
        (1, "data"),
        (2, "awaited"),
        (3, "awaited"),
    ]
