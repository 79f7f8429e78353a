"""Python's threads, as far as agents use them, on strands of a `World`.

`installed` puts them, and what is drawn by a seed, into the modules of the agent for as long as a
simulation runs. No lock is needed: a strand gives way only where it waits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from types import ModuleType
from typing import Any
from uuid import UUID

from bench.agent_simulation.world import Strand, World
from millstream.agent.delivery import delivery_attempt, outbox, root_decisions, sender
from millstream.agent.tree import membership, parent

_world: World | None = None
Replacement = tuple[ModuleType, str, Any]
"""A module, a name in it, and what is to stand there."""


def world() -> World:
    assert _world is not None, "no simulation is installed"
    return _world


class VirtualCondition:
    """`threading.Condition`."""

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: list[tuple[Strand, int]] = []

    def __enter__(self) -> bool:
        return True

    def __exit__(self, *raised: object) -> None:
        return None

    def wait(self, timeout: float | None = None) -> bool:
        here = world()
        strand = here.strand()
        mine = strand, strand.turn
        self._waiting.append(mine)
        end = None if timeout is None else here.now + max(0.0, timeout)
        if end is not None:
            here.wake(strand, strand.turn, end)
        try:
            here.wait()
        finally:
            notified = mine not in self._waiting
            if not notified:
                self._waiting.remove(mine)
        return notified

    def wait_for(self, predicate: Callable[[], bool], timeout: float | None = None) -> bool:
        end = None if timeout is None else world().now + timeout
        while not predicate():
            left = None if end is None else end - world().now
            if left is not None and left <= 0:
                break
            self.wait(left)
        return predicate()

    def notify_all(self) -> None:
        waiting, self._waiting = self._waiting, []
        for strand, turn in waiting:
            world().wake(strand, turn)


class VirtualEvent:
    """`threading.Event`."""

    __slots__ = ("_changed", "_set")

    def __init__(self) -> None:
        self._set, self._changed = False, VirtualCondition()

    def is_set(self) -> bool:
        return self._set

    def set(self) -> None:
        self._set = True
        self._changed.notify_all()

    def wait(self, timeout: float | None = None) -> bool:
        return self._changed.wait_for(self.is_set, timeout)


class VirtualThread:
    """`threading.Thread`, in the process that is being started."""

    def __init__(self, target: Callable[[], None], name: str = "", daemon: bool = False) -> None:
        self._target = target
        self._process = world().process
        self._strand: Strand | None = None

    @property
    def ident(self) -> int | None:
        return None if self._strand is None else id(self._strand)

    def start(self) -> None:
        self._strand = world().spawn(self._process, self._target)

    def is_alive(self) -> bool:
        return self._strand is not None and not self._strand.running.dead

    def join(self, timeout: float | None = None) -> None:
        """Nobody waits for a strand here."""


@contextmanager
def installed(here: World, random: Random, *more: Replacement) -> Iterator[None]:
    """Let the modules of the agent use the world's time, threads and luck, and what `more` says."""
    global _world
    instead: list[Replacement] = [
        (module, name, kind)
        for module in (root_decisions, sender, parent, membership, outbox)
        for name, kind in (
            ("Condition", VirtualCondition),
            ("Event", VirtualEvent),
            ("Thread", VirtualThread),
        )
        if hasattr(module, name)
    ]
    instead += [
        (root_decisions, "uniform", random.uniform),
        (root_decisions, "uuid4", lambda: UUID(int=random.getrandbits(128))),
        (delivery_attempt, "uniform", random.uniform),
        (membership, "random", random.random),
        *more,
    ]
    before = [(module, name, getattr(module, name)) for module, name, _ in instead]
    _world = here
    for module, name, kind in instead:
        setattr(module, name, kind)
    try:
        yield
    finally:
        for module, name, kind in before:
            setattr(module, name, kind)
        _world = None
