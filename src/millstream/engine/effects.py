"""Applies what a function yields: the engine's fast path over `model.rules`."""

from __future__ import annotations

from collections.abc import Iterable
from types import GeneratorType
from typing import Any

from millstream.codec import encode_value
from millstream.engine.columns import Columns
from millstream.engine.plan import Plan
from millstream.errors import CodecError
from millstream.model.duration import TIME_LIMIT
from millstream.model.event import END, INHERITED, Clock, Emit, Event, Forget, SetTimer
from millstream.model.function import Update
from millstream.model.path import PLAIN_KEY, is_unicode
from millstream.model.rules import effects as all_effects
from millstream.model.rules import emitted, no_timer_function, not_an_effect, timer_time
from millstream.stores.layout import Timers

_LAST = TIME_LIMIT - 1
"""The time of the last event that can exist."""


class Effects:
    """Applies the effects of one function, and collects the events that it emits."""

    def __init__(self, plan: Plan, number: int, clock: int = 0) -> None:
        """`clock` is the time of the batch: that of wall timers."""
        self.function = plan.functions[number]
        self._clock = clock
        self._streams: list[int] = []
        self.ts: list[int] = []
        """The times of the events that were emitted."""
        self._keys: list[str] = []
        self._values: list[bytes] = []
        self.reach = 0
        """The longest time that an event has set an event-time timer ahead since this was 0."""
        self._numbers = plan.stream_number
        self._delays = plan.delays
        publishes = self.function.publishes
        self._only = plan.stream_number[publishes[0]] if len(publishes) == 1 else None
        """The stream of all that it emits; None if there are several."""
        self._plain = self._only is not None and publishes[0] not in plan.delays
        """True if what it emits without `ts` is a microsecond later than its input."""

    @property
    def emitted(self) -> Columns:
        """The events that were emitted."""
        if self._only is not None:
            return Columns.on_stream(self._only, self.ts, self._keys, self._values)
        return Columns(self._streams, self.ts, self._keys, self._values)

    def emit(self, effect: Any, event: Event, value: bytes) -> None:
        """Applies one effect of a map, or of an update that only emits.

        `event` is the input, and `value` its encoded value. Raises if the effect breaks a rule.
        """
        if type(effect) is not Emit:
            raise not_an_effect(effect)
        stream, key, new_value, at = effect
        ts = event.ts
        if key is INHERITED:
            key = event.key
        if (
            self._plain
            and stream is None
            and at is None
            and ts < _LAST
            and type(key) is str
            and len(key) <= PLAIN_KEY
        ):
            ts += 1  # the common case
        else:
            stream, ts, key, _ = emitted(self.function, effect, event, self._delays)
        if not (key.isascii() or is_unicode(key)):
            raise CodecError(f"emitted key {key!r} is not valid Unicode")
        self._values.append(value if new_value is INHERITED else encode_value(new_value))
        self.ts.append(ts)
        self._keys.append(key)
        if self._only is None:
            assert stream is not None  # a function of several streams names the one
            self._streams.append(self._numbers[stream])

    def apply(
        self,
        effects: Iterable[Any],
        event: Event,
        value: bytes,
        timers: Timers,
        firing: Clock | None,
    ) -> bool:
        """Applies the effects of an update or timer function, and sets timers in `timers`.

        `firing` is the clock of the timer that fires; None for an event. Returns True if the slate
        is to be forgotten.
        """
        forget = False
        for effect in effects if type(effects) is GeneratorType else all_effects(effects):
            if type(effect) is SetTimer:
                self._set_timer(effect, event, timers, firing)
            elif type(effect) is Forget:
                forget = True
            else:
                self.emit(effect, event, value)
        return forget

    def _set_timer(
        self, timer: SetTimer, event: Event, timers: Timers, firing: Clock | None
    ) -> None:
        function, clock = self.function, timer.clock
        if not isinstance(function, Update) or function.on_timer is None:
            raise no_timer_function(function)
        now = event.ts if clock == "event" else self._clock
        at = timer_time(timer, now, firing=firing == clock)
        timers[timer.name] = (clock, at)
        if firing is None and clock == "event" and at != END and at - now > self.reach:
            self.reach = at - now

    def mark(self) -> int:
        """Returns the current end of `emitted`, for `undo`."""
        return len(self.ts)

    def undo(self, mark: int) -> None:
        """Removes what was emitted since the mark."""
        for column in (self._streams, self.ts, self._keys, self._values):
            del column[mark:]
