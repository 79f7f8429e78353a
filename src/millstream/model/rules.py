"""The rules for effects (what a function yields) as pure functions: their specification.

The reference applies these rules to every effect. The engine has a fast path for the common case
and uses these for the rest, so that an error reads the same wherever it is found.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from operator import index
from typing import Any

from millstream.errors import FunctionError
from millstream.model.duration import TIME_LIMIT
from millstream.model.event import END, INHERITED, Emit, Event, Forget, SetTimer
from millstream.model.function import Function
from millstream.model.letter_records import RecordForm
from millstream.model.path import LONGEST_KEY, is_long_key, plain_text


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """An input that could not be processed, and why. Nothing of it reached a slate or a stream."""

    function: str | None
    """The map or update that failed; None for a record that never became an event."""
    stream: str
    ts: int
    key: str
    value: Any
    error: str
    """The error's type and message, and the user's line."""
    batch: int | None = None
    timer: str | None = None
    """The timer's name, when a timer function failed."""
    file: str | None = None
    line: int | None = None
    form: RecordForm | None = None
    """What `value` is, for a record that never became an event."""
    attributes: str | None = None
    """The `RecordAttributes` of a Kafka record that never became an event, as JSON."""

    @property
    def is_record(self) -> bool:
        """True for a record that never became an event."""
        return self.function is None


def effects(returned: object) -> Iterable[object]:
    """Returns the effects that a function yields, or the list of them that it returned.

    A lone effect is refused: effects are tuples, so iterating over one would give its fields, and
    a returned `forget()`, which has none, would be lost silently.
    """
    if returned is None:
        return ()
    if isinstance(returned, Emit | SetTimer | Forget):
        raise FunctionError(
            "a function must yield its effects or return a list of them; it returned "
            f"{type(returned).__name__} {returned!r}: write 'yield' in place of 'return'"
        )
    if not isinstance(returned, Iterable):
        raise FunctionError(
            "a function must return nothing, or a list of emit(...), timer(...) and forget(); "
            f"it returned {type(returned).__name__} {returned!r}"
        )
    return returned


def emitted(function: Function, emit: Emit, event: Event, delays: Mapping[str, int]) -> Event:
    """Returns the event for an `emit` and its input event; FunctionError if it breaks a rule.

    `delays` holds the streams whose events are later by more than a microsecond.
    """
    stream, key, value, ts = emit
    if stream is None:
        if len(function.publishes) != 1:
            raise FunctionError(
                f"emit() without a stream needs a function that publishes exactly one; "
                f"this one publishes {', '.join(function.publishes) or 'none'}"
            )
        stream = function.publishes[0]
    elif stream not in function.publishes:
        raise FunctionError(
            f"emitted to stream {stream!r}, which it does not publish "
            f"(it publishes {', '.join(function.publishes) or 'none'}); add it to publishes="
        )
    if key is INHERITED:
        key = event.key
    elif not isinstance(key, str):
        raise FunctionError(f"emitted key must be text; got {type(key).__name__} {key!r}")
    elif is_long_key(key):
        raise FunctionError(
            f"emitted key must have at most {LONGEST_KEY} bytes; got one of {len(key)} characters, "
            f"{key[:40]!r} ...: use a hash of it"
        )
    else:
        key = plain_text(key)
    least = event.ts + max(1, delays.get(stream, 0))
    if ts is None:
        ts = least
    elif isinstance(ts, bool) or not isinstance(ts, int):
        raise FunctionError(
            f"emitted ts must be whole microseconds; got {type(ts).__name__} {ts!r}"
        )
    elif (ts := index(ts)) < least:
        delay = delays.get(stream, 0)
        if delay > 1:
            raise FunctionError(
                f"emitted ts {ts} must be at least {least}, its input's {event.ts} plus the delay "
                f"of stream {stream!r}; leave ts out to get {least}"
            )
        raise FunctionError(
            f"emitted ts {ts} must be greater than its input's {event.ts}; "
            f"leave ts out to get {least}"
        )
    if ts >= TIME_LIMIT:
        raise FunctionError(f"emitted ts {ts} must be less than {TIME_LIMIT}: is its unit right?")
    return Event(stream, ts, key, event.value if value is INHERITED else value)


def timer_time(timer: SetTimer, now: int, *, firing: bool) -> int:
    """Returns the time a timer is set for, given the current time of its clock.

    An update may set a timer for the current time; a firing timer only for a later one, or it would
    fire for ever. A timer for the end of event time may set itself again: it fires once at each
    end.
    """
    at = now + timer.after if timer.after is not None else timer.at
    if at == END and timer.clock == "event":
        return END
    if isinstance(at, bool) or not isinstance(at, int):
        raise FunctionError(f"timer at must be whole microseconds or a datetime; got {at!r}")
    at = index(at)
    if at < now or (firing and at == now):
        must = "later than" if firing else "at or after"
        raise FunctionError(f"timer at {at} must be {must} the current {timer.clock} time {now}")
    if at >= TIME_LIMIT:
        raise FunctionError(f"timer at {at} must be before {TIME_LIMIT}: is its unit right?")
    return at


def no_timer_function(function: Function) -> FunctionError:
    called = getattr(function.function, "__name__", "")
    advice = f"with @{called}.on_timer" if called.isidentifier() else "as on_timer="
    return FunctionError(
        "set a timer, but the update has no on_timer function; add a function (timer, slate) "
        f"{advice}"
    )


def not_an_effect(effect: object) -> FunctionError:
    return FunctionError(
        "a function may yield emit(...), timer(...) or forget(), or return a list of them; "
        f"got {type(effect).__name__} {effect!r}"
    )
