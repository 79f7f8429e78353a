"""Intervals hold as often as they say, over many windows, also where a window was watched."""

from __future__ import annotations

from typing import Any

import pytest
from generated_cases import PROFILE
from windows.told import Unit, a_job, data, lost

from bench.imr.drawn_windows import FREQUENT, KINDS, contract, covered
from millstream.errors import DefinitionError
from millstream.messages.answers import Bound
from millstream.windows.bounds.estimates import estimate
from millstream.windows.bounds.strata import rounds_done
from millstream.windows.coverage import Coverage
from millstream.windows.fidelity import Area, Error, closing, rounds
from millstream.windows.panes.pane_rank import rank

NODES = ["a", "b", "c"]


def units(under: int, panes: int = 8, **options: Any) -> list[Unit]:
    """The panes of all nodes that have a rank under this one."""
    seed = options.get("seed", 0)
    return [(n, p) for n in NODES for p in range(panes) if rank(seed, n, p, panes) < under]


def test_intervals_have_the_truth_in_them() -> None:
    """1,000 windows of ten nodes and twenty panes, keys skewed across nodes, half of the panes
    drawn: 93 to 97% of the nominal 95% intervals have the truth in them, for totals and for
    frequent keys, for counts, sums, means, ratios and histograms. The default run shows 92 to 98%
    over the first 250 of these windows: so few leave a point more to chance."""
    windows, allowed = (250, 0.03) if PROFILE == "ci" else (1_000, 0.02)
    rows = [
        row
        for row in covered(windows, KINDS, seed=20)
        if row["what"] in ("total", *FREQUENT, "home, lower bucket")
    ]
    assert len(rows) == 5 * 3 + 1
    for row in rows:
        assert row["windows"] == windows
        assert 0.95 - allowed <= row["covered"] <= 0.95 + allowed, row


def test_rare_keys_are_covered_too() -> None:
    """A key that is in few panes has the truth in its interval at least as often, and the interval
    is wider than its value."""
    for row in covered(200, ("count",), part=0.25, told=False, seed=21):
        if row["what"] == "help":
            assert row["covered"] >= 0.93
            assert row["width"] > 1


def test_the_contract_holds_though_it_was_watched() -> None:
    """±5% at 95%: the total of at least 95% of the windows is within 5% of the truth, whatever
    round it was closed after; and windows are closed before all panes are there."""
    for kind in ("mean", "count"):
        rows = contract(250, kind, Error(0.05), seed=22)
        assert len(rows) == 250
        assert sum(row["error"] <= 0.05 for row in rows) >= 0.95 * len(rows)
        assert sum(row["part"] < 1 for row in rows) > 0.8 * len(rows)


def test_watching_makes_intervals_wider() -> None:
    """Each look may fail with a third of the chance, with a latency a fourth; so the same panes
    give a wider interval than without `Error`, and a still wider one with a latency."""
    half = units(4)
    told, values = dict.fromkeys(half, data(10)), {unit: 10 + unit[1] for unit in half}
    widths = []
    for options in (
        {"fidelity": Area(0.5, drawn=True)},
        {"fidelity": Error(0.05)},
        {"fidelity": Error(0.05), "latency": "1m"},
    ):
        found = estimate(a_job("sum", 8, **options), NODES, range(8), told, {"k": values}).total
        assert found.confidence == 0.95
        widths.append(found.high - found.low)
    assert widths == sorted(widths)
    assert len(set(widths)) == 3


def bound(value: float, low: float, high: float | None) -> Bound:
    return Bound(value=value, low=low, high=high, confidence=0.95, method="sampled", final=True)


def test_a_look_asks_for_every_truth_in_the_interval() -> None:
    """The value must be within the part of either end; where an end is not known it is not met."""
    error = Error(0.1)
    assert error.look(bound(100, 91, 110))
    assert not error.look(bound(100, 90, 110))  # 10 is over 10% of 90
    assert not error.look(bound(100, 91, 112))
    assert not error.look(bound(100, 91, None))
    assert error.look(bound(-100, -105, -95))
    assert error.look(bound(0, 0, 0))


def test_rounds_are_looked_at_when_all_nodes_have_them() -> None:
    """A round is complete when each node has sent its panes of those ranks, or began after them; a
    pane that was given up never completes it."""
    job = a_job("count", 8, fidelity=Error(0.05))
    ends = rounds(8)
    assert ends == (2, 4, 6, 8)
    for number, end in enumerate(ends, 1):
        told = dict.fromkeys(units(end), data(5))
        assert rounds_done(job, NODES, range(8), told) == number
        last = next(unit for unit in units(end) if rank(0, *unit, 8) == end - 1)
        absent = told | {last: lost(0, "absent")}
        assert rounds_done(job, NODES, range(8), absent) == number
        assert rounds_done(job, NODES, range(8), told | {last: lost(5)}) == number - 1
        del told[last]
        assert rounds_done(job, NODES, range(8), told) == number - 1


def test_between_rounds_only_whole_rounds_count() -> None:
    """Panes of the next round, which come in the order of the log, do not move the estimate: those
    that are there first are the early ones."""
    job = a_job("sum", 8, fidelity=Error(0.05))
    first = {unit: 10.0 + unit[1] for unit in units(2)}
    before = estimate(job, NODES, range(8), dict.fromkeys(first, data(9)), {"k": first}).total
    early = min(set(units(3)) - set(first), key=lambda unit: unit[1])
    more = first | {early: 11.0}
    after = estimate(job, NODES, range(8), dict.fromkeys(more, data(9)), {"k": more}).total
    assert before.value == after.value == 4 * sum(first.values())
    nothing = estimate(job, NODES, range(8), {}, {}).total
    assert (nothing.low, nothing.high) == (0, None)


def test_a_window_is_closed_by_a_look() -> None:
    """Coverage alone neither meets `Error` nor makes it impossible, as long as something can come;
    a look closes the window."""
    one = Coverage(("a",), range(2), {("a", 0): "lost"})
    assert closing(one, Error(0.05), overdue=False) is None
    assert closing(one, Error(0.05), overdue=False, near=True) == "fidelity"
    assert closing(one, Error(0.05), overdue=True) == "latency"
    settled = Coverage(("a",), range(1), {("a", 0): "lost"})
    assert closing(settled, Error(0.05), overdue=False) == "failure"


@pytest.mark.parametrize(
    ("given", "said"),
    [((0.0,), "a part over 0"), ((0.05, 0.3), "a confidence of"), ((2,), "a part over 0")],
)
def test_what_error_refuses(given: tuple[Any, ...], said: str) -> None:
    """A part of the truth, and a confidence of at least a half."""
    with pytest.raises(DefinitionError, match=said):
        Error(*given)
