"""Virtual time: events in their order, and strands, which are threads that take turns.

A strand runs until it waits. Then the next event is looked for, the time becomes that event's, and
whoever it is for goes on. Nothing else moves the time.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush

from greenlet import GreenletExit, getcurrent, greenlet


class Process:
    """A simulated process: its strands end together."""

    __slots__ = ("alive", "name", "strands")

    def __init__(self, name: str) -> None:
        self.name = name
        self.alive = True
        self.strands: dict[Strand, None] = {}


class Strand:
    """A thread of a process."""

    __slots__ = ("failure", "process", "running", "turn")

    def __init__(self, process: Process, run: Callable[[], None], world: World) -> None:
        self.process = process
        self.turn = 0
        """Changes whenever it goes on, so that a wake-up that is no longer meant is known."""
        self.failure: Exception | None = None

        def whole() -> None:
            try:
                run()
            except Exception as error:
                self.failure = error
                world.failures.append((process.name, error))
            finally:
                process.strands.pop(self, None)

        self.running = greenlet(whole, world.hub)


class World:
    """The simulated time, and the events to come."""

    def __init__(self) -> None:
        self.now = 0.0
        """Seconds since the beginning."""
        self.hub = getcurrent()
        self.current: Strand | None = None
        self.process = Process("world")
        """The process whose strands are being started."""
        self.failures: list[tuple[str, Exception]] = []
        """Exceptions that strands have raised."""
        self.steps = 0
        self._events: list[tuple[float, int, Strand | Callable[[], None], int]] = []
        self._count = 0

    def at(self, when: float, call: Callable[[], None]) -> None:
        """Call a function, which must not wait, at a time."""
        self._push(when, call, 0)

    def spawn(self, process: Process, run: Callable[[], None]) -> Strand:
        """Starts a strand of a process, now but after the running ones."""
        strand = Strand(process, run, self)
        process.strands[strand] = None
        self._push(self.now, strand, strand.turn)
        return strand

    def sleep(self, seconds: float) -> None:
        """Wait; only a strand may."""
        strand = self.strand()
        self._push(self.now + max(0.0, seconds), strand, strand.turn)
        self.wait()

    def strand(self) -> Strand:
        assert self.current is not None, "only a strand can wait"
        return self.current

    def wait(self) -> None:
        """Give way until woken."""
        strand = self.strand()
        self.hub.switch()
        self.current = strand

    def wake(self, strand: Strand, turn: int, when: float | None = None) -> None:
        """Let a strand go on, unless it has since `turn`."""
        self._push(self.now if when is None else when, strand, turn)

    def kill(self, process: Process) -> None:
        """End a process at once. Not to be called by its own strands."""
        process.alive = False
        was = self.current
        for strand in list(process.strands):
            strand.turn += 1
            self.current = strand
            strand.running.throw(GreenletExit)
        self.current = was
        process.strands.clear()

    def run(self, until: float) -> None:
        """Let things happen up to a time."""
        events = self._events
        while events and events[0][0] <= until:
            when, _, what, turn = heappop(events)
            self.now = when
            if isinstance(what, Strand):
                if what.turn == turn and not what.running.dead:
                    what.turn += 1
                    self.current = what
                    self.steps += 1
                    what.running.switch()
                    self.current = None
            else:
                self.steps += 1
                what()
        self.now = until

    def _push(self, when: float, what: Strand | Callable[[], None], turn: int) -> None:
        self._count += 1
        heappush(self._events, (max(when, self.now), self._count, what, turn))
