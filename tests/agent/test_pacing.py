"""The panes that an agent makes: those that are wanted and can be in time."""

from __future__ import annotations

from typing import Any

from agent_runs import placed
from taking_root import Clock

import millstream as ms
from millstream.agent.panes.pane_pace import LAG, Pacing
from millstream.windows.job import Job

SECOND = 1_000_000


class Told:
    """The decisions of the root that the agent knows."""

    def __init__(self) -> None:
        self.closed_windows: set[int] = set()
        self.opened_windows: dict[int, float] = {}

    def closed(self, window: int) -> bool:
        return window in self.closed_windows

    def opened(self, window: int) -> float | None:
        return self.opened_windows.get(window)


def job(**options: Any) -> Job:
    return placed(**{"by": "records", "range": 400, "pane": 100, "latency": "10s", **options}).job


class Node:
    """A node that makes panes, each of which takes some seconds."""

    def __init__(self, job: Job) -> None:
        self.clock, self.told = Clock(), Told()
        self.wall = 1_000 * SECOND
        self.pacing = Pacing(job, "web1", self.told, self.clock, lambda: self.wall)

    def make(self, pane: int, seconds: float, pieces: int = 10) -> str:
        """Make a pane in pieces: "made", or why it was given up."""
        why = self.pacing.choose(pane)
        for piece in range(pieces):
            if why is not None:
                return why
            self.clock.now += seconds / pieces
            why = self.pacing.look(pane, (piece + 1) / pieces)
        return why or "made"


def test_a_pane_is_cancelled_when_all_its_windows_are_closed() -> None:
    """It is cancelled before or while it is made. A pane of an open window is made."""
    node = Node(job(slide=200))
    node.told.closed_windows = {0}
    assert node.make(1, 1) == "cancelled" or node.told.closed(-1) is False
    node.told.closed_windows = {-1, 0, 1}
    assert node.make(3, 1) == "cancelled"
    assert node.make(4, 1) == "made"
    assert node.pacing.choose(5) is None
    node.told.closed_windows |= {2}
    assert node.pacing.look(5, 0.5) == "cancelled"


def test_a_pane_that_corrects_a_closed_window_is_made() -> None:
    """If nothing is said of time or fidelity, and as long as the job corrects the window. (With a
    latency, panes of closed windows are given up so that the node catches up.)"""
    patient, urgent = Node(job(corrections=2, latency=None)), Node(job(corrections=2))
    for node, first in ((patient, "made"), (urgent, "cancelled")):
        node.told.closed_windows = {0}
        assert node.make(0, 1) == first
        node.told.closed_windows = {0, 1, 2}
        assert node.make(1, 1) == "cancelled"
        assert node.make(4, 1) == first


def test_panes_that_would_be_late_are_shed() -> None:
    """With ten seconds for a window and four for a pane, the third is given up when its time is
    seen to be short, and so is the fourth; the next window is made again."""
    node = Node(job())
    node.told.opened_windows = {0: node.clock.now}
    assert [node.make(pane, 4) for pane in range(4)] == ["made", "made", "shed", "shed"]
    assert node.clock.now - 1_000 < 10
    node.told.opened_windows[1] = node.clock.now
    assert node.make(4, 4) == "made"


def test_nothing_is_shed_before_the_root_has_opened_the_window() -> None:
    """A root that cannot be heard has not begun to count the time."""
    node = Node(job())
    assert [node.make(pane, 60) for pane in range(4)] == ["made"] * 4


def test_nothing_is_shed_without_a_latency_or_if_it_is_never_to_be() -> None:
    """A window without a deadline waits for all."""
    for options in ({"latency": None}, {"shed": "never"}):
        node = Node(job(**options))
        node.told.opened_windows = {0: node.clock.now}
        assert [node.make(pane, 60) for pane in range(4)] == ["made"] * 4


def test_time_without_work_is_not_counted() -> None:
    """A node that waits for its log is not slow."""
    node = Node(job(latency="100s"))
    node.told.opened_windows = {0: node.clock.now}
    for pane in range(3):
        assert node.pacing.choose(pane) is None
        node.clock.now += 30
        node.pacing.waited(30)
        assert node.pacing.look(pane, 1.0) is None
    assert node.make(3, 1) == "made"


def test_the_deadline_is_after_the_end_of_a_window_of_time() -> None:
    """A window that has not ended by the clock has time until its latency after that."""
    node = Node(job(by="time", range="400s", pane="100s"))
    window = node.wall // (400 * SECOND)
    node.told.opened_windows = {window: node.clock.now - 50}
    assert node.make(window * 4, 5) == "made"
    node.wall += 600 * SECOND
    assert node.make(window * 4 + 1, 5) == "shed"


def test_a_node_that_falls_behind_its_log_is_late() -> None:
    """Though the root has opened the window only now, because the node has only now come to it."""
    node = Node(job(by="time", range="400s", pane="100s"))
    window = node.wall // (400 * SECOND)
    node.wall += 1_000 * SECOND
    node.told.opened_windows = {window: node.clock.now}
    assert node.make(window * 4, 1) == "shed"
    assert node.make((window + 3) * 4, 1) == "made"


def test_a_log_of_the_past_has_time_from_when_its_windows_are_opened() -> None:
    """The windows had ended before the agent began."""
    node = Node(job(by="time", range="400s", pane="100s"))
    node.told.opened_windows = {0: node.clock.now}
    assert [node.make(pane, 4) for pane in range(4)] == ["made", "made", "shed", "shed"]


def test_learning_late_that_a_window_was_opened() -> None:
    """The root's news takes a while to arrive. So the time at which the node itself reached the
    window counts, if that was shortly before."""
    node = Node(job())
    node.pacing.choose(0)
    node.clock.now += 1
    node.told.opened_windows = {0: node.clock.now}
    assert node.pacing._opened(0) == 1_000.0
    node.told.opened_windows = {0: node.clock.now + 100}
    assert node.pacing._opened(0) == node.clock.now + 100 - LAG


def test_panes_that_come_later() -> None:
    """A pane that is kept for its round is no work, and is not taken for a quick one."""
    node = Node(placed(fidelity=ms.windows.Error(0.05), bounds="count").job)
    assert node.pacing.choose(0, later=True) == "drawn"
    assert node.pacing.look(0, 0.5) is None
    node.pacing.choose(1)
    assert node.pacing._shedder.made is None
