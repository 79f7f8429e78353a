"""What the parts of an agent have in common: whom they tell, when they stop, what time it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from threading import Event

from millstream.agent.outbox import Say


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Where an agent's parts run."""

    say: Say
    stop: Event
    tick: Callable[[], None]
    """To be called while something takes long: it raises what must end the agent."""
    clock: Callable[[], float]
    """Seconds that only go forward."""
    wall: Callable[[], int]
    """The time of day in microseconds."""
