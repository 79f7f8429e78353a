"""C², the four specifications, and when a window is closed."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import millstream as ms
from millstream.codec import decode_value, encode_value
from millstream.model.slate import NoEntries, Table
from millstream.windows.board.board_meta import PlaceCounts
from millstream.windows.board.node_places import NodePlace, NodePlaces
from millstream.windows.coverage import RECEIVED, Coverage, CoverageTally, Mark, UnendedCoverage
from millstream.windows.fidelity import Area, Fidelity, Spatial, Temporal, closing
from millstream.windows.members import Members
from millstream.windows.reducers import NEVER

NODES, PANES = ("a", "b", "c", "d"), range(10, 14)
marks = st.dictionaries(
    st.tuples(st.sampled_from(NODES), st.sampled_from(PANES)),
    st.sampled_from(["data", "empty", "lost", "late"]),
)
bounds = st.sampled_from([Area, Spatial, Temporal])


def coverage(given: dict[tuple[str, int], Mark]) -> Coverage:
    return Coverage(NODES, PANES, given)


def half(of: Any) -> Coverage:
    """The marks that a condition on node and pane chooses."""
    return coverage({(n, p): "data" for n in NODES for p in PANES if of(n, p)})


def test_the_same_area_in_two_ways() -> None:
    """Figure 5: half of the panes from all nodes, all panes from half of the nodes."""
    first = half(lambda node, pane: pane < 12)
    second = half(lambda node, pane: node < "c")
    assert (first.area, second.area) == (0.5, 0.5)
    assert (first.time, first.space, first.whole_panes, first.whole_nodes) == (0.5, 1, 0.5, 0)
    assert (second.time, second.space, second.whole_panes, second.whole_nodes) == (1, 0.5, 0, 0.5)
    assert (first.histogram, second.histogram) == ([4, 4, 0, 0], [2, 2, 2, 2])


@given(marks)
def test_area_is_the_marks_that_were_received(given: dict[tuple[str, int], Mark]) -> None:
    """Lost ones and those with late records do not count, empty ones do; time and space are at
    least the area."""
    found = coverage(given)
    received = [mark for mark in given.values() if mark not in ("lost", "late")]
    came = [mark for mark in given.values() if mark != "lost"]
    assert found.area == len(received) / 16
    assert min(found.time, found.space) >= found.area
    assert found.all_came == (len(came) == 16)


@given(marks, bounds, st.floats(0.01, 1))
def test_what_can_no_longer_be_met_is_not_met_later(
    given: dict[tuple[str, int], Mark], bound: Any, part: float
) -> None:
    """`at_best` is at least as good as anything that can still come of a window."""
    fidelity: Fidelity = bound(part)
    best = coverage(given).at_best()
    if fidelity.met(coverage(given)):
        assert fidelity.met(best)
    filled: dict[tuple[str, int], Mark] = {(n, p): "data" for n in NODES for p in PANES}
    known = {unit: mark for unit, mark in given.items() if mark != "late"}
    assert fidelity.met(best) == fidelity.met(coverage({**filled, **known}))


def counted(given: dict[tuple[str, int], Mark]) -> CoverageTally:
    """The same marks as counts."""
    rows = [[given.get((node, pane)) for pane in PANES] for node in NODES]
    columns = [[given.get((node, pane)) for node in NODES] for pane in PANES]
    return CoverageTally(
        nodes=len(NODES),
        panes=len(PANES),
        received=sum(mark in RECEIVED for mark in given.values()),
        lost=sum(mark == "lost" for mark in given.values()),
        whole=sum(all(mark in RECEIVED for mark in column) for column in columns),
        hurt=sum("lost" in column for column in columns),
        late=sum(mark == "late" for mark in given.values()),
        some=sum(any(mark in RECEIVED for mark in column) for column in columns),
        whole_nodes_count=sum(all(mark in RECEIVED for mark in row) for row in rows),
        hurt_nodes=sum("lost" in row for row in rows),
        some_nodes=sum(any(mark in RECEIVED for mark in row) for row in rows),
        gone_nodes=sum(all(mark == "lost" for mark in row) for row in rows),
    )


@given(marks, bounds, st.floats(0.01, 1), st.booleans())
def test_counts_of_the_marks_say_the_same(
    given: dict[tuple[str, int], Mark], bound: Any, part: float, overdue: bool
) -> None:
    """This holds for any marks, and for the best coverage that is still possible."""
    whole, tally = coverage(given), counted(given)
    for one, other in ((whole, tally), (whole.at_best(), tally.at_best())):
        for name in ("area", "space", "whole_panes", "whole_nodes", "all_came"):
            assert getattr(one, name) == getattr(other, name), name
    assert (whole.time, whole.settled) == (tally.time, tally.settled)
    fidelity = bound(part)
    assert closing(whole, fidelity, overdue=overdue) == closing(tally, fidelity, overdue=overdue)


@given(marks, st.dictionaries(st.sampled_from(NODES), st.sampled_from(PANES)))
def test_what_ended_logs_have_not_counts_for_no_fidelity(
    given: dict[tuple[str, int], Mark], over: dict[str, int]
) -> None:
    """The shares are those of the other panes alone; if there are none, all is there."""
    ended = {(node, pane) for node, end in over.items() for pane in PANES if pane >= end}
    given = {**given, **dict.fromkeys(ended, "empty")}
    places = NodePlaces(
        Table(NoEntries(), encode_value, decode_value), Members(NODES), PlaceCounts()
    )
    for node in NODES:
        places.put(node, NodePlace(over=over.get(node, NEVER)))
    found = UnendedCoverage(counted(given), *places.ended(PANES))
    rest = [(node, pane) for node in NODES for pane in PANES if (node, pane) not in ended]
    here = {unit for unit in rest if given.get(unit) in RECEIVED}
    assert found.area == (len(here) / len(rest) if rest else 1.0)
    columns = [[unit in here for unit in rest if unit[1] == pane] for pane in PANES]
    rows = [[unit in here for unit in rest if unit[0] == node] for node in NODES]
    for part, lines in ((found.whole_panes, columns), (found.whole_nodes, rows)):
        left = [all(line) for line in lines if line]
        assert part == (sum(left) / len(left) if left else 1.0)


@given(marks, bounds, st.floats(0.01, 1), st.booleans())
def test_why_a_window_is_closed(
    given: dict[tuple[str, int], Mark], bound: Any, part: float, overdue: bool
) -> None:
    """In this order: complete, the bound is met, its time is over, it is of no use to wait."""
    found, fidelity = coverage(given), bound(part)
    reason = closing(found, fidelity, overdue=overdue)
    if found.all_came:
        assert reason == "complete"
    elif fidelity.met(found):
        assert reason == "fidelity"
    elif overdue:
        assert reason == "latency"
    else:
        hopeless = len(given) == 16 or not fidelity.met(found.at_best())
        assert reason == ("failure" if hopeless else None)


@pytest.mark.parametrize("part", [0, 1.1, -1, True, "half"])
def test_a_bound_is_a_part(part: Any) -> None:
    """Over 0 and at most 1."""
    with pytest.raises(ms.DefinitionError, match="a part over 0 and at most 1"):
        Area(part)
