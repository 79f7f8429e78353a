"""The division of panes into fair samples."""

from __future__ import annotations

from typing import Any

from windows.told import Unit, a_job, data, lost

from bench.imr.drawn_windows import job as drawn_job
from bench.imr.drawn_windows import kept_of, manifests_of, truth, values_of, windows
from bench.imr.shed_windows import covered
from millstream.windows.bounds.estimates import estimate
from millstream.windows.bounds.strata import layout
from millstream.windows.fidelity import Area, Error
from millstream.windows.panes.pane_rank import rank

PANES = 20


def told_of(job: Any, node: str, panes: range, under: int) -> dict[Unit, Any]:
    """Returns the messages of a node that has made the panes with a rank under this one."""
    ranks = {pane: rank(job.seed, node, pane, job.span.panes) for pane in panes}
    return {(node, pane): data(7) if of < under else lost(7, "drawn") for pane, of in ranks.items()}


def test_each_block_of_a_node_is_a_stratum() -> None:
    """A window that slides has parts of two blocks; each is sampled by its own threshold."""
    job = a_job("count", PANES, slide=10, shed="drawn")
    told = told_of(job, "a", range(10, 20), 12) | told_of(job, "a", range(20, 30), 6)
    found = layout(job, ["a"], range(10, 30), told)
    assert [len(one.units) for one in found.strata] == [10, 10]
    received = {unit for unit, one in told.items() if one.mark == "data"}
    assert frozenset().union(*(one.sample for one in found.strata)) == received
    assert (found.lost, found.unknown, found.lost_records) == (0, 0, 0)


def test_a_small_part_of_a_block_joins_the_other() -> None:
    """Where one stratum has under two drawn panes, the node's strata are one, by the lower of the
    thresholds: no pane was likelier to be drawn than another."""
    job = a_job("count", PANES, slide=1, shed="drawn")
    for shift in range(1, PANES):
        panes = range(shift, shift + PANES)
        told = told_of(job, "a", range(shift, PANES), 10)
        told |= told_of(job, "a", range(PANES, PANES + shift), 5)
        found = layout(job, ["a"], panes, told)
        for one in found.strata:
            assert len(one.sample) >= 2
        if len(found.strata) == 1 and len(found.strata[0].units) == PANES:
            assert all(rank(0, *unit, PANES) < 10 for unit in found.strata[0].sample)
            ranks = {rank(0, *unit, PANES) for unit in found.strata[0].sample}
            assert max(ranks) < min(
                rank(0, *unit, PANES) for unit in panes_missing(told) if unit[1] >= PANES
            )


def panes_missing(told: dict[Unit, Any]) -> list[Unit]:
    return [unit for unit, one in told.items() if one.mark == "lost"]


def test_a_node_that_is_in_the_middle_is_sampled_up_to_there() -> None:
    """Panes that a node has not reported are unknown. The others are a sample of each other. Once
    all wanted panes have come, the rest is known to be left out."""
    job = a_job("count", PANES, fidelity=Area(0.5, drawn=True))
    told = told_of(job, "a", range(12), 10)
    found = layout(job, ["a"], range(PANES), told)
    assert [unit[1] for one in found.strata for unit in one.units] == list(range(12))
    assert (found.lost, found.unknown, found.lost_records) == (8, 8, None)
    drawn = {u: one for u, one in told_of(job, "a", range(PANES), 10).items() if one.records}
    found = layout(job, ["a"], range(PANES), drawn)
    assert [len(one.units) for one in found.strata] == [PANES]
    assert found.strata[0].records is None  # of the panes that were left out nobody has told
    assert (found.lost, found.unknown, found.lost_records) == (0, 0, 0)


def test_what_a_node_began_after_is_no_part_of_the_sample() -> None:
    """A node that came late has a sample of what came after; the panes before are lost."""
    job = a_job("count", PANES, shed="drawn")
    told = told_of(job, "a", range(PANES), 10)
    told |= {("a", pane): lost(0, "absent") for pane in range(6)}
    found = layout(job, ["a"], range(PANES), told)
    assert [unit[1] for one in found.strata for unit in one.units] == list(range(6, PANES))
    assert (found.lost, found.unknown, found.lost_records) == (6, 6, None)


def test_without_a_whole_round_there_is_no_sample() -> None:
    """With `Error`, the panes of an incomplete round are a node's early panes."""
    job = a_job("count", PANES, fidelity=Error(0.05))
    told = told_of(job, "a", range(12), 10)
    found = layout(job, ["a"], range(PANES), told)
    assert found.strata == ()
    assert found.lost == PANES - sum(one.mark == "data" for one in told.values())


def test_windows_that_slide_are_covered() -> None:
    """Wherever a window begins in a block, its intervals hold: at least 90% of 150 contain the
    truth, at a nominal 95%."""
    job = drawn_job("count", part=0.5)
    for shift in (3, 10):
        inside = 0
        for made in windows(150, 41):
            units = tuple((node, pane + shift) for node, pane in made.units)
            panes = range(made.panes.start + shift, made.panes.stop + shift)
            moved = type(made)(panes, units, made.records, made.counts, made.sums, made.small)
            kept = kept_of(job, moved, 10)
            manifests = manifests_of(moved, kept, told=True)
            values = values_of("count", moved, kept)
            bound = estimate(job, moved.nodes, panes, manifests, values).total
            assert bound.method == "sampled"
            inside += bound.low <= truth("count", moved) <= bound.high
        assert inside >= 0.9 * 150


def test_what_the_shedder_leaves_is_a_fair_sample() -> None:
    """Nodes whose load changes, and that shed by rank when time is short: at least 90% of 100
    windows have the truth inside, and few have a node without any sample."""
    for row in covered(100, ("count", "sum"), seed=42):
        assert row["inside"] >= 0.9 * row["windows"], row
        assert row["worst_case"] <= 10, row
