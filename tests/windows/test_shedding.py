"""Shedding: which panes a node gives up, with a clock that the tests hold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest
from generated_cases import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.windows.fidelity import Area, rounds
from millstream.windows.job import Job
from millstream.windows.panes.pane_rank import rank
from millstream.windows.panes.shedder import ALPHA, Shedder, drawn_panes, round_of

PANES = 20
WORK = 8.0
"""Seconds of a pane when nothing else runs, as in the paper: 160 s for a window."""
LATENCY = WORK * PANES
CHUNK = 0.25
"""The part of a second after which the node asks again."""


def a_job(shed: str, fidelity: Any = None) -> Job:
    def words(record: Any) -> list[tuple[str, int]]:
        return [(record, 1)]

    return Job(
        map=words,
        range=PANES,
        pane=1,
        by="records",
        latency=f"{LATENCY}s",
        shed=shed,  # type: ignore[arg-type]  # what a test gives
        fidelity=fidelity,
    )


def due(pane: int) -> float:
    """A window each `LATENCY` seconds: as fast as the node could be."""
    return (pane // PANES + 1) * LATENCY


@dataclass
class Node:
    """A node that works on its panes; `speed` says how fast it is at a moment."""

    shedder: Shedder
    speed: Callable[[float], float]
    now: float = 0.0
    sent: dict[int, float] = field(default_factory=dict)
    """When each pane was ready."""

    def read(self, panes: int, size: Callable[[int], float] = lambda pane: 1.0) -> None:
        pane, shedder = 0, self.shedder
        skip = 0
        while pane < panes:
            shedder.begin(pane, self.now)
            if pane < skip or not shedder.drawn(pane):
                self.now += 0.01 * WORK  # it is only read over
                shedder.ended(pane, self.now, made=False)
            elif (to := self._make(pane, size(pane))) is None:
                self.sent[pane] = self.now
                shedder.ended(pane, self.now)
            else:
                assert to > pane
                skip = to
            pane += 1

    def _make(self, pane: int, size: float) -> int | None:
        done, work = 0.0, size * WORK
        while done < work:
            to = self.shedder.decide(self.now, pane, done / work, due)
            if to is not None:
                return to
            done += CHUNK * self.speed(self.now)
            self.now += CHUNK
        return None

    def in_time(self, panes: int) -> float:
        """The part of the panes that were ready before their deadline."""
        return sum(at <= due(pane) for pane, at in self.sent.items()) / panes

    def late_windows(self) -> set[int]:
        return {pane // PANES for pane, at in self.sent.items() if at > due(pane)}


def noisy(share: float, seed: int) -> Callable[[float], float]:
    """A share of the processor that wavers, as beside other work."""
    random = Random(seed)
    return lambda now: share * random.uniform(0.7, 1.3)


@pytest.mark.parametrize("burn", [2, 3, 4])
@pytest.mark.parametrize("shed", ["order", "drawn"])
def test_deadlines_are_met_under_burn_with_more_of_the_data(shed: str, burn: int) -> None:
    """Figure 8: with a half to a quarter of the processor at least 99% of 100 windows have nothing
    that came too late, and there is at least 1.5 times as much in them as without shedding."""
    windows = 100
    shedding = Node(Shedder(a_job(shed), "web1"), noisy(1 / burn, burn))
    shedding.read(windows * PANES)
    never = Node(Shedder(a_job("never"), "web1"), noisy(1 / burn, burn))
    never.read(windows * PANES)
    assert len(shedding.late_windows()) <= windows / 100
    fidelity = shedding.in_time(windows * PANES)
    assert fidelity >= 1.5 * never.in_time(windows * PANES)
    assert fidelity >= 0.75 / burn


def test_with_time_enough_nothing_is_shed() -> None:
    """A node that is fast enough makes every pane."""
    for shed in ("order", "drawn"):
        node = Node(Shedder(a_job(shed), "web1"), lambda now: 1.3)
        node.read(10 * PANES)
        assert len(node.sent) == 10 * PANES


@given(
    st.lists(st.floats(0.05, 3), min_size=1, max_size=20),
    st.lists(st.floats(0.1, 5), min_size=1, max_size=20),
    st.sampled_from(["order", "drawn"]),
)
@settings(max_examples=examples(60), deadline=None)
def test_nothing_is_ever_late(shares: list[float], sizes: list[float], shed: str) -> None:
    """For any load and sizes of panes, sent panes are in time if the shedder is asked at least as
    often as the headroom requires."""
    shedder = Shedder(a_job(shed), "web1", headroom=CHUNK)
    node = Node(shedder, lambda now: shares[int(now / 37) % len(shares)])
    node.read(6 * PANES, lambda pane: sizes[pane % len(sizes)])
    assert not node.late_windows()


@given(
    st.lists(st.floats(0.05, 3), min_size=1, max_size=20),
    st.lists(st.floats(0.1, 5), min_size=1, max_size=20),
)
@settings(max_examples=examples(60), deadline=None)
def test_a_threshold_is_only_lowered(shares: list[float], sizes: list[float]) -> None:
    """Drawn: within a block no pane is made whose rank is not under the threshold of the panes
    before it, and nothing under the last threshold is missing."""
    shedder = Shedder(a_job("drawn"), "web1")
    seen: dict[int, list[int]] = {}
    decide = shedder.decide

    def watched(now: float, pane: int, part_done: float, deadline: Any) -> int | None:
        to = decide(now, pane, part_done, deadline)
        seen.setdefault(pane // PANES, []).append(shedder.threshold(pane))
        return to

    shedder.decide = watched  # type: ignore[method-assign]  # looked over, not replaced
    node = Node(shedder, lambda now: shares[int(now / 37) % len(shares)])
    node.read(6 * PANES, lambda pane: sizes[pane % len(sizes)])
    for block, thresholds in seen.items():
        assert thresholds == sorted(thresholds, reverse=True)
        panes = range(block * PANES, (block + 1) * PANES)
        under = {pane for pane in panes if rank(0, "web1", pane, PANES) < thresholds[-1]}
        assert under <= set(node.sent)


def test_the_plan_of_a_block_is_kept() -> None:
    """Drawn, with a load that wavers around the same: from the second block on the threshold is
    set once and not lowered in most blocks, so that it does not depend on what panes hold."""
    node = Node(Shedder(a_job("drawn"), "web1"), noisy(0.5, 3))
    node.read(50 * PANES)
    kept = 0
    for block in range(1, 50):
        ranks = {rank(0, "web1", p, PANES) for p in node.sent if p // PANES == block}
        kept += ranks == set(range(len(ranks)))
    assert kept >= 40


def test_the_estimate_leans_to_the_recent() -> None:
    """After 30% of a pane it is made for the first time; the newest observation has 80% of it."""
    shedder = Shedder(a_job("order"), "web1")
    shedder.begin(0, 0.0)
    shedder.decide(2.0, 0, 0.2, lambda pane: None)
    assert shedder.made is None
    shedder.decide(3.0, 0, 0.3, lambda pane: None)
    assert shedder.made == pytest.approx(10.0)
    shedder.decide(4.0, 0, 0.35, lambda pane: None)
    assert shedder.made == pytest.approx(10.0)  # not two seconds later
    shedder.decide(5.0, 0, 0.4, lambda pane: None)
    assert shedder.made == pytest.approx(ALPHA * 20 + (1 - ALPHA) * 10)


def test_waiting_is_no_work() -> None:
    """A pane that took long because nothing came is not expected to take long again."""
    shedder = Shedder(a_job("order"), "web1")
    shedder.begin(0, 0.0)
    shedder.waited(58.0)
    shedder.ended(0, 60.0)
    assert shedder.made == pytest.approx(2.0)


@pytest.mark.parametrize("shed", ["order", "drawn"])
def test_time_for_sending_is_left(shed: str) -> None:
    """A pane is given up that would be ready only within the headroom of its deadline, even if
    nothing is known yet of how long panes take."""
    shedder = Shedder(a_job(shed), "web1", headroom=3.0)
    assert shedder.decide(LATENCY - 3.1, 0, 0.2, due) is None
    assert shedder.decide(LATENCY - 3.0, 0, 0.2, due) is not None
    assert Shedder(a_job("never"), "web1").decide(LATENCY, 0, 0.2, due) is None


def test_a_pane_given_up_in_the_middle_tells_nothing() -> None:
    """Neither how long a pane takes that is made, nor how long one that is read over."""
    shedder = Shedder(a_job("order"), "web1")
    shedder.begin(0, 0.0)
    shedder.ended(0, 1.0, made=False)
    assert shedder.skipped == pytest.approx(ALPHA)
    shedder.begin(1, 1.0)
    shedder.decide(9.0, 1, 0.2, lambda pane: 5.0)
    shedder.ended(1, 10.0, made=False)
    assert (shedder.made, shedder.skipped) == (None, pytest.approx(ALPHA))


def test_the_next_pane_that_can_be_in_time() -> None:
    """Order: what is left of a window that is too late is skipped, up to the next window."""
    shedder = Shedder(a_job("order"), "web1", made=16.0)
    assert shedder.decide(LATENCY - 10, 18, 0.0, due) == PANES
    assert shedder.decide(LATENCY - 17, 19, 0.0, due) is None


def test_only_what_is_asked_for_is_drawn() -> None:
    """`Area(0.5, drawn=True)`: half of each block, also where nothing is ever shed."""
    shedder = Shedder(a_job("never", Area(0.5, drawn=True)), "web1")
    for block in range(5):
        panes = range(block * PANES, (block + 1) * PANES)
        made = [pane for pane in panes if shedder.drawn(pane)]
        assert len(made) == drawn_panes(0.5, PANES) == 10
    assert drawn_panes(0.01, PANES) == 1
    assert drawn_panes(1.0, 7) == 7


def test_rounds_are_quarters_by_rank() -> None:
    """Each pane of a block is in one of the four rounds of `Error`, a quarter in each."""
    found = [round_of(a_job("order"), "web1", pane) for pane in range(PANES)]
    assert [found.count(number) for number in range(4)] == [5, 5, 5, 5]
    assert rounds(PANES) == (5, 10, 15, 20)
