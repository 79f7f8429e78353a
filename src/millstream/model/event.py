"""Events, and what a function may yield.

An event is `(stream, ts, key, value)` (Muppet, section 3). Functions yield *effects*: an event to
emit, a timer to set, or a request to forget the slate. Effects are requests; the engine and the
reference carry them out.

These are named tuples rather than dataclasses because one is made for every event on the hot path.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final, Literal, NamedTuple

from millstream.errors import FunctionError
from millstream.model.duration import Duration, instant, microseconds
from millstream.model.path import is_unicode, plain_text

Clock = Literal["event", "wall"]
_new = tuple.__new__
END: Final = (1 << 63) - 1
"""The time of a timer that fires when event time is ended: after every other event and timer."""


class Event(NamedTuple):
    """One event of a stream. `ts` is whole microseconds since the epoch, global across streams."""

    stream: str
    ts: int
    key: str
    value: Any


class _Inherited:
    """Stands for "as in the input"; None is a value of its own."""

    def __repr__(self) -> str:
        return "<as in the input>"

    def __reduce__(self) -> str:
        return "INHERITED"


INHERITED: Final = _Inherited()


class Emit(NamedTuple):
    """A request to put an event onto a stream."""

    stream: str | None
    key: Any
    value: Any
    ts: int | None


class SetTimer(NamedTuple):
    """A request to set a timer, or to move the one of the same name."""

    name: str
    clock: Clock
    at: int | None
    after: int | None


class Forget(NamedTuple):
    """A request to delete the slate, and its timers with it, once the function has ended."""


Effect = Emit | SetTimer | Forget
"""The types that an update or a timer function may yield. A map may yield only `Emit`."""


class Timer(NamedTuple):
    """The first argument of a timer function. `ts` is the time it was set for, on its clock."""

    ts: int
    key: str
    name: str
    clock: Clock
    reached: int = 0
    """For a wall timer: how far event time has come."""

    @property
    def now(self) -> int:
        """The event time at which it fires: what it emits is later.

        >>> Timer(5, "k", "", "wall", reached=7).now
        7
        """
        return max(self.ts, self.reached) if self.clock == "wall" else self.ts


def emit(
    stream: str | None = None,
    *,
    key: Any = INHERITED,
    value: Any = INHERITED,
    ts: int | None = None,
) -> Emit:
    """Emit an event.

    Defaults: the one stream that the function publishes; the input's key; the input's value; the
    input's `ts` plus one microsecond (or plus the stream's delay).
    """
    return _new(Emit, (stream, key, value, ts))


def timer(
    *,
    at: int | datetime | Literal["end"] | None = None,
    after: Duration | None = None,
    name: str = "",
    clock: Clock = "event",
) -> SetTimer:
    """Set a timer at an instant, or after a duration counted from the current time of its clock.

    With `at="end"` it fires when event time is ended (`--final`).
    """
    if (at is None) == (after is None):
        raise FunctionError("timer() takes either at= or after=, one of them")
    if clock not in ("event", "wall"):
        raise FunctionError(f"timer(clock=) must be 'event' or 'wall'; got {clock!r}")
    if not isinstance(name, str):
        raise FunctionError(f"timer(name=) must be text; got {type(name).__name__} {name!r}")
    if isinstance(at, str):
        if at != "end":
            raise FunctionError(f"timer(at=) must be microseconds, a datetime or 'end'; got {at!r}")
        if clock != "event":
            raise FunctionError("timer(at='end') is of event time; the wall clock has no end")
        at = END
    if not is_unicode(name):
        raise FunctionError(f"timer(name=) {name!r} is not valid Unicode")
    return SetTimer(
        plain_text(name),
        "event" if clock == "event" else "wall",
        None if at is None else instant(at),
        None if after is None else microseconds(after, "timer(after=)"),
    )


def forget() -> Forget:
    """Delete the slate and its timers once the function has ended."""
    return Forget()
