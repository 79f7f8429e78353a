"""What an application declares of its streams, and how much later than its input an event is.

A stream may have a delay, or come *after* another one: then its events are later than all that the
same input, or an earlier one, leads to on that other stream. For this the stream gets a delay that
is longer than the way to the other stream. Each function on a way takes a microsecond, or the delay
of the stream to which it emits. Where several ways lead to a stream, the longest counts. An event
with a later `ts` of its own, or one that a timer's function emits, is beyond this order.

The ways to the other stream do not go over the stream itself, nor through its publisher again:
what comes around a cycle belongs to a later event.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

from millstream.errors import DefinitionError
from millstream.model.function import Function


@dataclass(frozen=True, slots=True)
class Stream:
    """The declared properties of a stream, apart from its readers and writers."""

    name: str
    output: bool = False
    delay: int = 0
    """The least time, in microseconds, by which its events are later than their input."""
    after: str | None = None
    """Another stream: its events are later than all that their input leads to there. See
    `StreamOrder`."""
    action: bool = False
    """True for an output whose events are carried out after their batch is committed."""
    order_by: str | None = None
    """The numeric field of the value that orders the output of a batch; None: time does."""
    value: type | None = None
    """A dataclass with the fields of the events' values; sinks make columns of them."""
    late_of: tuple[str, ...] = ()
    """If given, the stream carries a `LateNotice` of each late event of the sources that are among
    these streams or lead to them."""


@dataclass(frozen=True, slots=True)
class ChangeOutput:
    """The changes of an update's slates, for sinks and tails: they depend on the batches."""

    name: str
    update: str


class StreamOrder:
    """The delays of the streams between some functions."""

    def __init__(self, functions: Sequence[Function], declared: Iterable[Stream]) -> None:
        self._functions = functions
        self._declared = {stream.name: stream for stream in declared}
        self._delays: dict[str, int] = {}
        self._pending: list[str] = []
        """Streams whose delay is being computed, each after the next."""

    def delays(self) -> dict[str, int]:
        """Returns the delay of each stream that has one; DefinitionError if the streams cannot
        come in the order that is declared."""
        delays = {name: self._delay(name) for name in self._declared}
        return {name: delay for name, delay in delays.items() if delay}

    def way(self, start: str, goal: str) -> int:
        """Returns the longest time, in microseconds, from an event of one stream to what it leads
        to on another."""
        time = self._longest([f for f in self._functions if start in f.subscribes], goal)
        if not time:
            raise DefinitionError(f"no function leads from stream {start!r} to stream {goal!r}")
        return time

    def _delay(self, name: str) -> int:
        if name not in self._delays:
            stream = self._declared.get(name, Stream(name))
            wait = 0 if stream.after is None else self._wait(name, stream.after)
            self._delays[name] = max(stream.delay, wait)
        return self._delays[name]

    def _wait(self, name: str, other: str) -> int:
        """Returns by how much a stream is later than its input if it comes after another one."""
        if name in self._pending:
            circle = " after ".join(repr(stream) for stream in (*self._pending, name))
            raise DefinitionError(f"streams cannot come after each other: {circle}")
        self._pending.append(name)
        publishers = [function for function in self._functions if name in function.emits]
        time = max((self._longest([each], other, name, each) for each in publishers), default=0)
        self._pending.pop()
        if not time:
            raise DefinitionError(
                f"stream {name!r}: after must name a stream to which its publisher's input leads "
                f"in another way; got {other!r}"
            )
        return time + 1

    def _longest(
        self,
        starts: Sequence[Function],
        goal: str,
        without: str | None = None,
        publisher: Function | None = None,
    ) -> int:
        """Returns the longest time from an input of `starts` to the goal; 0 if it does not lead
        there. No way goes over the stream `without`, or comes to the publisher."""
        ways = _StreamRoutes(
            [f for f in self._functions if f is not publisher], starts, goal, without
        )
        times: dict[str, int] = {}
        for function in ways.from_the_goal():
            times[function.name] = max(
                max(1, self._delay(stream))
                + max((times[reader.name] for reader in ways.readers(stream)), default=0)
                for stream in function.emits
                if stream == goal or ways.readers(stream)
            )
        return max((times.get(start.name, 0) for start in starts), default=0)


class _StreamRoutes:
    """The functions on the ways from some functions to a stream."""

    def __init__(
        self,
        functions: Sequence[Function],
        starts: Sequence[Function],
        goal: str,
        without: str | None,
    ) -> None:
        self._goal = goal
        self._functions = {function.name: function for function in (*functions, *starts)}
        self._readers: dict[str, list[Function]] = {goal: []}
        if without is not None:
            self._readers[without] = []
        for function in functions:
            for stream in function.subscribes:
                if stream not in (goal, without):
                    self._readers.setdefault(stream, []).append(function)
        self._onward = self._reached(starts)
        leading = set() if goal == without else self._leading()
        self._onward = {name: self._onward[name] & leading for name in leading}
        for stream, readers in self._readers.items():
            self._readers[stream] = [reader for reader in readers if reader.name in leading]

    def _reached(self, starts: Sequence[Function]) -> dict[str, set[str]]:
        """Returns each function that the starts lead to, with those that read what it emits."""
        reached: dict[str, set[str]] = {}
        left = list(starts)
        while left:
            function = left.pop()
            if function.name not in reached:
                after = [reader for stream in function.emits for reader in self.readers(stream)]
                reached[function.name] = {reader.name for reader in after}
                left += after
        return reached

    def _leading(self) -> set[str]:
        """Returns the functions that lead to the goal."""
        leading = {name for name in self._onward if self._goal in self._functions[name].emits}
        while more := {name for name, after in self._onward.items() if after & leading} - leading:
            leading |= more
        return leading

    def readers(self, stream: str) -> list[Function]:
        """Returns the functions to which a way goes over a stream."""
        return self._readers.get(stream, [])

    def from_the_goal(self) -> list[Function]:
        """Returns the functions, each after those that are nearer to the goal."""
        try:
            order = [*TopologicalSorter(self._onward).static_order()]
        except CycleError as error:
            raise DefinitionError(
                f"stream {self._goal!r} cannot be waited for: the way to it goes round in a cycle "
                f"through {', '.join(error.args[1])}"
            ) from None
        return [self._functions[name] for name in order]
