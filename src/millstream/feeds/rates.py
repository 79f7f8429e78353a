"""How often something happens, kept in six numbers (Feeding Frenzy, 4.3).

*Usual.* Events and the time that they took, both forgetting half of themselves in every `memory`,
but never so much that fewer than `FEWEST` events are left: what is rarer than that is known by its
last few gaps. The rate is the one over the other. So it is right for what happens every second and
for what happens every week.

*A flash* (5.5) is when a second count, with a short memory, has `SUDDEN` events and they come
`LEAP` times as often as usual. While it lasts, the rate is the highest that was seen in it of late,
so that what follows from the rate changes once, and not with every lull. The usual rate is left as
it was, so that it is there again as soon as the flash is over; a flash that lasts for `LASTING` of
the memory begins to count.

Rates are compared by their class, four to a doubling.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, exp2, floor, log, log2

SECOND = 1_000_000
FLASH = 60 * SECOND
"""The short memory, in microseconds."""
SUDDEN = 8.0
"""Events within the short memory that may be a flash. Turning a pair twice costs several pushes: a
few posts in a row are not worth it."""
LEAP = 4.0
"""How much more often than usual events come in a flash."""
CALM = 0.25
"""With so few events left in the short memory a flash is over."""
LASTING = 1 / 8
"""The part of the memory after which a flash counts as usual."""
FEWEST = 8.0
"""Events that are not forgotten, however long ago they were."""
YOUNG = 1 / 2
"""The part of the memory that the first event is taken to have come after: it is no high rate."""
BREAK, BREAK_GAPS = 2.0, 8.0
"""A gap counts for no longer than this much of the memory, or so many gaps as usual: who is back
from a long break is soon known again."""
STEPS = 4
"""Classes to a doubling."""
ZERO = 160
"""The class of one event a second."""
MOST = 800
"""No rate is of a higher class."""
ALWAYS, NEVER = 998, 0
"""Classes above and below those of all rates."""


@dataclass(slots=True)
class Rate:
    """A rate as of its last event; times in microseconds."""

    count: float = 0.0
    span: float = 0.0
    """The time that `count` took."""
    at: int = 0
    sudden: float = 0.0
    peak: float = 0.0
    """Of a flash: the highest rate of late, a second; 0 if there is none."""
    begun: int = 0

    @classmethod
    def read(cls, stored: list[float] | None) -> Rate:
        """As it is kept in a table."""
        if stored is None:
            return cls()
        count, span, at, sudden, peak, begun = stored
        return cls(count, span, int(at), sudden, peak, int(begun))

    def written(self) -> list[float]:
        rounded = [round(self.count, 6), round(self.span), self.at, round(self.sudden, 6)]
        return [*rounded, self.peak, self.begun]

    def add(self, ts: int, events: float, memory: int, *, flashes: bool = True) -> None:
        """So many events, at a time; what comes out of order counts as if it came now."""
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
        """Events a second, as of the last one, or of a later time if none has come since."""
        count, span = self._as_of(now, memory)
        usual = count / span * SECOND if span else 0.0
        return max(usual, self.peak) if self._left(now) >= CALM else usual

    @property
    def over(self) -> int:
        """When a flash will be over if nothing more happens."""
        return self.at + int(FLASH * log2(max(1.0, self.sudden / CALM))) + SECOND

    def calmed(self, now: int) -> bool:
        """Whether there was a flash that is over by then; it is no more."""
        is_over = self.peak > 0.0 and self._left(now) < CALM
        if is_over:
            self.peak = 0.0
        return is_over

    def _is_flash(self, ts: int, left: float, events: float, memory: int) -> bool:
        """Whether these events are of a flash and no part of what is usual; notes its peak."""
        usual = self.count / self.span * SECOND
        lasts = self.peak > 0.0 and left >= CALM and self.peak > 2 * usual
        rate = (left + events) * log(2) / (FLASH / SECOND)
        if not lasts:
            self.peak = 0.0
            if left + events < SUDDEN or rate < LEAP * usual:
                return False
            self.begun = ts
            self.count = max(1.0, self.count - left)  # these were the first of it
        sunk = exp2(-max(0, ts - self.at) / (memory * LASTING))  # else a first surge stays for ever
        self.peak = max(self.peak * sunk, rate)
        return ts - self.begun < memory * LASTING

    def _as_of(self, now: int, memory: int) -> tuple[float, float]:
        """The count and its time, if nothing happens until then."""
        passed = now - self.at
        if passed <= 0 or not self.at:
            return self.count, self.span
        part = max(exp2(-passed / memory), min(1.0, FEWEST / self.count))
        return self.count * part, self.span * part + passed

    def _left(self, now: int) -> float:
        """What the short memory has kept until then."""
        passed = max(0, now - self.at)
        return self.sudden * exp2(-passed / FLASH)


def class_of(rate: float) -> int:
    """The class of a rate; 0 of none.

    >>> class_of(1.0), class_of(2.0), class_of(0.0), class_of(1e-30)
    (160, 164, 0, 1)
    """
    if rate <= 0:
        return NEVER
    return min(MOST, max(1, floor(STEPS * log2(rate)) + ZERO))


def class_from(rate: float) -> int:
    """The lowest class all of whose rates are at least this.

    >>> class_from(2.0), class_from(2.1)
    (164, 165)
    """
    if rate <= 0:
        return NEVER
    return min(MOST, max(1, ceil(STEPS * log2(rate)) + ZERO))
