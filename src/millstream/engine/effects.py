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
from millstream.model.event import END, INHERITED, Emit, Event, Forget, SetTimer
from millstream.model.function import Update
from millstream.model.path import PLAIN_KEY
from millstream.model.rules import effects as all_effects
from millstream.model.rules import emitted, no_timer_function, not_an_effect, timer_time
from millstream.stores.layout import Timers

_LAST = TIME_LIMIT - 1
"""The time of the last event that can exist."""


class Effects:
    """Applies the effects of one function, and collects the events that it emits."""

    def __init__(self, plan: Plan, number: int) -> None:
        self.function = plan.functions[number]
        self._streams: list[int] = []
        self._ts: list[int] = []
        self._keys: list[str] = []
        self._values: list[bytes] = []
        self.reach = 0
        """The longest time that `apply` has set an event-time timer ahead since this was last 0."""
        self._numbers = plan.stream_number
        self._delays = plan.delays
        publishes = self.function.publishes
        self._single = (
            plan.stream_number[publishes[0]]
            if len(publishes) == 1 and publishes[0] not in plan.delays
            else None
        )

    @property
    def emitted(self) -> Columns:
        """The events that were emitted."""
        return Columns(self._streams, self._ts, self._keys, self._values)

    def emit(self, effects: Iterable[Any], stream: str, ts: int, key: str, value: bytes) -> None:
        """Applies the effects of a map, or of an update that only emits.

        `stream`, `ts`, `key` and `value` (encoded) are the input's. Raises if an effect breaks a
        rule.
        """
        if type(effects) is not GeneratorType:
            effects = all_effects(effects)
        for effect in effects:
            if type(effect) is not Emit:
                raise not_an_effect(effect)
            self._emit(effect, stream, ts, key, value)

    def _emit(self, effect: Emit, stream: str, ts: int, key: str, value: bytes) -> None:
        to, new_key, new_value, at = effect
        if (
            to is None
            and self._single is not None
            and at is None
            and ts < _LAST
            and type(new_key) is str
            and len(new_key) <= PLAIN_KEY
        ):
            number, time = self._single, ts + 1  # the common case
        else:
            event = emitted(self.function, effect, Event(stream, ts, key, None), self._delays)
            number, time, new_key = self._numbers[event.stream], event.ts, event.key
        if not new_key.isascii():
            _check_unicode(new_key)
        packed = value if new_value is INHERITED else encode_value(new_value)
        self._streams.append(number)
        self._ts.append(time)
        self._keys.append(new_key)
        self._values.append(packed)

    def apply(
        self,
        effects: Iterable[Any],
        event: Event,
        value: bytes,
        timers: Timers,
        clock: int,
        firing: str | None,
    ) -> bool:
        """Applies the effects of an update or timer function, and sets timers in `timers`.

        `firing` is the clock of the timer that fires; None for an event. Returns True if the slate
        is to be forgotten.
        """
        forget = False
        if type(effects) is not GeneratorType:
            effects = all_effects(effects)
        for effect in effects:
            if type(effect) is Emit:
                self._emit(effect, event.stream, event.ts, event.key, value)
            elif type(effect) is SetTimer:
                function = self.function
                if not isinstance(function, Update) or function.on_timer is None:
                    raise no_timer_function(function)
                now = event.ts if effect.clock == "event" else clock
                at = timer_time(effect, now, firing=firing == effect.clock)
                timers[effect.name] = (effect.clock, at)
                if effect.clock == "event" and at != END and at - now > self.reach:
                    self.reach = at - now
            elif type(effect) is Forget:
                forget = True
            else:
                raise not_an_effect(effect)
        return forget

    def mark(self) -> int:
        """Returns the current end of `emitted`, for `undo`."""
        return len(self._ts)

    def undo(self, mark: int) -> None:
        """Removes what was emitted since the mark."""
        if len(self._ts) > mark:
            del self._streams[mark:], self._ts[mark:], self._keys[mark:], self._values[mark:]


def _check_unicode(key: str) -> None:
    try:
        key.encode()
    except UnicodeEncodeError:
        raise CodecError(f"emitted key {key!r} is not valid Unicode") from None
