"""Rows and messages that earlier versions have stored or sent are read as they are."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from millstream.messages.jobs import WindowCompleteness, WindowCoverage
from millstream.trees.messages import AcceptedPanes, ToldRecord
from millstream.windows.accounts import WindowAccount, window_of
from millstream.windows.board.board_meta import BoardMeta, PlaceCounts
from millstream.windows.board.node_places import NodePlace
from millstream.windows.panes.message import Message, manifest
from millstream.windows.panes.pane_ledger import LedgerMeta, NodeLedger, PanePart, PaneRun
from millstream.windows.reducers import NewSchedule, PaneReport

MANIFEST = (
    b'{"mark":"data","why":null,"records":2,"bytes":5,"shed":0,"shed_bytes":0,"dead":0,"late":{},'
    b'"total":2,"first":7,"last":9}'
)
MARKS = b'{"a":["data",2,5,"",0,0,0,0,2,7,9,0]}'

SAME: list[tuple[bytes, Any]] = [
    (
        b'{"tree":"t","pane":3,"until":4,"nodes":{"a":' + MANIFEST + b'},"partials":{"x":1},'
        b'"span":"sequence/2/2/1"}',
        Message(
            tree="t",
            pane=3,
            until=4,
            nodes={
                "a": msgspec.structs.replace(
                    manifest("data", 2), records=2, bytes=5, first=7, last=9
                )
            },
            partials={"x": 1},
            span="sequence/2/2/1",
        ),
    ),
    (
        b'{"schedule":[[-4611686018427387904,1]],"repeated":3,"carried":true}',
        LedgerMeta([[-(1 << 62), 1]], 3, True),
    ),
    (
        b'{"runs":[[0,4,0,9,0],[6,7,11,12,1]],"life":1,"over":4611686018427387904}',
        NodeLedger([PaneRun(0, 4, 0, 9, 0), PaneRun(6, 7, 11, 12, 1)], 1, 1 << 62),
    ),
    (b'{"until":7}', PaneReport(until=7)),
    (b'{"reducers":2}', PaneReport(reducers=2)),
    (b'{"schedule":[[5,2]],"carried":false}', NewSchedule([[5, 2]], carried=False)),
    (
        b'{"accepted":{"pane":1,"until":2,"nodes":["a"]}}',
        ToldRecord(accepted=AcceptedPanes(1, 2, ["a"])),
    ),
    (b'{"closed":7,"reducer":"2/1","of":2}', ToldRecord(closed=7, reducer="2/1", reducers=2)),
]


@pytest.mark.parametrize(("stored", "row"), SAME, ids=[type(row).__name__ for _, row in SAME])
def test_a_row_is_stored_as_it_was(stored: bytes, row: Any) -> None:
    """An earlier version's bytes are read, and the same bytes are written."""
    assert msgspec.json.decode(stored, type=type(row)) == row
    assert msgspec.json.encode(row) == stored


def test_a_part_that_was_left_waiting_is_read() -> None:
    """Earlier versions wrote neither `over` nor `claimed`."""
    stored = (
        b'{"_order":"04611686018427387907","pane":3,"until":4,"marks":' + MARKS + b',"begin":[],'
        b'"late":{},"partials":{"x":1},"accounted":true,"schedule":[[-4611686018427387904,1]]}'
    )
    part = msgspec.json.decode(stored, type=PanePart)
    assert (part.order, part.pane, part.over, part.claimed) == ("04611686018427387907", 3, {}, {})
    assert [*part.marks] == ["a"]


def test_a_window_of_one_reducer_that_was_closed_is_read() -> None:
    """Its number of reducers used to be written though it is 1."""
    stored = b'{"closed":0,"reducer":"1/0","of":1}'
    assert msgspec.json.decode(stored, type=ToldRecord) == ToldRecord(closed=0, reducer="1/0")


def test_the_scoreboard_of_an_earlier_version_is_read() -> None:
    """Fields that it did not have get their defaults; those that are gone are skipped."""
    stored = (
        b'{"first":0,"final":true,"kept":2,"open":[1],"closed":[[0,1]],"job":"5e","places":{"heard"'
        b':2,"begun":2,"latest":0,"ended":0,"earliest":4611686018427387904,"end":46116860184273879'
        b'04},"schedule":[[-4611686018427387904,1]],"late_panes":0,"late_records":0,"repeated":0,'
        b'"read":7,"late":0,"misdated":0,"swept":2,"forgot":-99,"said":[5,6],"tardy":true}'
    )
    meta = msgspec.json.decode(stored, type=BoardMeta)
    assert (meta.first, meta.final, meta.kept, meta.open) == (0, True, 2, [1])
    assert (meta.closed, meta.swept, meta.forgot, meta.said) == ([[0, 1]], 2, -99, [5, 6])
    assert (meta.tardy, meta.quiet, meta.legacy) == (True, False, -(1 << 62))
    assert meta.places == PlaceCounts(heard=2, begun=2, latest=0)
    assert msgspec.json.decode(msgspec.json.encode(meta), type=BoardMeta) == meta
    assert b'"from"' not in msgspec.json.encode(meta)


def test_a_window_of_an_earlier_version_is_read() -> None:
    """`drawn` was a share, beside counts of nodes."""
    stored = {"received": 4, "why": "complete", "drawn": 0.5, "nodes": {}, "after": [["a", 3]]}
    assert window_of(stored) == WindowAccount(received=4, why="complete", after=[("a", 3)])
    assert stored["drawn"] == 0.5


def test_a_window_whose_coverage_lacked_fields_is_read() -> None:
    """An open window had an empty coverage; that of a closed one had no causes of missing panes."""
    assert window_of({"received": 4, "coverage": {}, "completeness": {}}) == WindowAccount(4)
    completeness = {"records": None, "bytes": 0.5, "unknown_panes": 2}
    stored = {"coverage": {"area": 0.5, "time": 1.0, "space": 1.0}, "completeness": completeness}
    window = window_of(stored)
    assert window.coverage == WindowCoverage(0.5, 1.0, 1.0, {})
    assert window.completeness == WindowCompleteness(None, 0.5, 2, 0.0, 0.0)
    assert window_of(msgspec.to_builtins(window)) == window


def test_the_place_of_a_node_is_stored_as_it_was() -> None:
    stored = b'{"begun":3,"over":4611686018427387904}'
    assert msgspec.json.decode(stored, type=NodePlace) == NodePlace(begun=3)
    assert msgspec.json.encode(NodePlace(begun=3)) == stored
