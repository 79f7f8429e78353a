"""The things that all parts of an agent share: the way to report, the stop event, the clocks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from threading import Event

from millstream.agent.delivery.outbox import Say


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Passed to all parts of an agent."""

    say: Say
    stop: Event
    tick: Callable[[], None]
    """To be called during long work: raises an error that must end the agent."""
    clock: Callable[[], float]
    """Seconds that only go forward."""
    wall: Callable[[], int]
    """The time of day in microseconds."""
