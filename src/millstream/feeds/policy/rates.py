"""The rate at which events happen, kept in six numbers (Feeding Frenzy, 4.3).

*The usual rate* is a count of events over the time that they took. Both halve in every `memory`,
but at least `FEWEST` events are kept: the rate of rare events is based on their last few gaps. So
it suits events that happen every second and events that happen every week.

*A flash* (5.5) is a burst: a second count, with a short memory, reaches `SUDDEN` events, and they
come `LEAP` times as often as usual. During a flash the rate is the highest one seen in it recently,
so decisions based on the rate change once, and not with every lull. The usual rate stays as it was,
so it applies again as soon as the flash is over. A flash that lasts for `LASTING` of the memory
begins to count towards the usual rate.

Rates are compared by their class, four to a doubling.
"""

from __future__ import annotations

from math import ceil, exp2, floor, log, log2

import msgspec

SECOND = 1_000_000
FLASH = 60 * SECOND
"""The short memory, in microseconds."""
SUDDEN = 8.0
"""The number of events within the short memory that may be a flash. To change the side of a pair
twice costs several pushes, which a few posts in a row do not justify."""
LEAP = 4.0
"""In a flash, events come at least this many times as often as usual."""
CALM = 0.25
"""A flash is over when fewer events than this are left in the short memory."""
LASTING = 1 / 8
"""After this part of the memory, a flash counts as usual."""
FEWEST = 8.0
"""This many events are never forgotten."""
YOUNG = 1 / 2
"""The first event is assumed to have taken this part of the memory, so it does not make a high
rate."""
BREAK, BREAK_GAPS = 2.0, 8.0
"""A gap counts for at most `BREAK` memories or `BREAK_GAPS` usual gaps, whichever is longer. So the
rate soon recovers after a long break."""
STEPS = 4
"""The number of classes to a doubling."""
ZERO = 160
"""The class of one event a second."""
MOST = 800
"""The highest class of any rate."""
ALWAYS, NEVER = 998, 0
"""Classes above and below those of all rates."""


class Rate(msgspec.Struct, array_like=True):
    """A rate as of its last event; times in microseconds. It is stored as a list of its fields."""

    count: float = 0.0
    span: float = 0.0
    """The time that `count` took."""
    at: int = 0
    sudden: float = 0.0
    peak: float = 0.0
    """The highest recent rate of a flash, in events a second; 0 if there is no flash."""
    begun: int = 0

    def rounded(self) -> Rate:
        """Returns the rate in the precision in which it is stored."""
        count, sudden = round(self.count, 6), round(self.sudden, 6)
        return Rate(count, round(self.span), self.at, sudden, self.peak, self.begun)

    def add(self, ts: int, events: float, memory: int, *, flashes: bool = True) -> None:
        """Adds events at a time. Out-of-order events count as if they came now."""
        if not self.at:
            self.count, self.span, self.at = events, memory * YOUNG, ts
            self.sudden = events if flashes else 0.0
            return
        left = self._left(ts)
        if not (flashes and self._is_flash(ts, left, events, memory)):
            longest = max(memory * BREAK, BREAK_GAPS * self.span / self.count)
            count, span = self._as_of(min(ts, self.at + int(longest)), memory)
            self.count, self.span = count + events, span
        self.sudden = left + events if flashes else 0.0
        self.at = max(self.at, ts)

    def per_second(self, memory: int, now: int = 0) -> float:
        """Events a second as of the last event, or as of `now` if that is later and none has come
        since."""
        count, span = self._as_of(now, memory)
        usual = count / span * SECOND if span else 0.0
        return max(usual, self.peak) if self._left(now) >= CALM else usual

    @property
    def over(self) -> int:
        """The time at which a flash ends if nothing more happens."""
        return self.at + int(FLASH * log2(max(1.0, self.sudden / CALM))) + SECOND

    def calmed(self, now: int) -> bool:
        """True, and resets the peak, if a flash has ended by `now`."""
        is_over = self.peak > 0.0 and self._left(now) < CALM
        if is_over:
            self.peak = 0.0
        return is_over

    def _is_flash(self, ts: int, left: float, events: float, memory: int) -> bool:
        """True if these events belong to a flash and not to the usual rate. Updates the peak."""
        usual = self.count / self.span * SECOND
        lasts = self.peak > 0.0 and left >= CALM and self.peak > 2 * usual
        rate = (left + events) * log(2) / (FLASH / SECOND)
        if not lasts:
            self.peak = 0.0
            if left + events < SUDDEN or rate < LEAP * usual:
                return False
            self.begun = ts
            self.count = max(1.0, self.count - left)  # these were the start of the flash
        # Without decay, the first surge would set the peak for ever.
        decay = exp2(-max(0, ts - self.at) / (memory * LASTING))
        self.peak = max(self.peak * decay, rate)
        return ts - self.begun < memory * LASTING

    def _as_of(self, now: int, memory: int) -> tuple[float, float]:
        """The count and its time as of `now`, if nothing happens until then."""
        passed = now - self.at
        if passed <= 0 or not self.at:
            return self.count, self.span
        part = max(exp2(-passed / memory), min(1.0, FEWEST / self.count))
        return self.count * part, self.span * part + passed

    def _left(self, now: int) -> float:
        """The count in the short memory as of `now`."""
        passed = max(0, now - self.at)
        return self.sudden * exp2(-passed / FLASH)


def class_of(rate: float) -> int:
    """The class of a rate; 0 for a rate of 0.

    >>> class_of(1.0), class_of(2.0), class_of(0.0), class_of(1e-30)
    (160, 164, 0, 1)
    """
    if rate <= 0:
        return NEVER
    return min(MOST, max(1, floor(STEPS * log2(rate)) + ZERO))


def class_from(rate: float) -> int:
    """The lowest class whose rates are all at least `rate`.

    >>> class_from(2.0), class_from(2.1)
    (164, 165)
    """
    if rate <= 0:
        return NEVER
    return min(MOST, max(1, ceil(STEPS * log2(rate)) + ZERO))
