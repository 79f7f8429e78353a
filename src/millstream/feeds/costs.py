"""What a push and a pull cost, as measured, and the ratio that follows. Pure: times are arguments.

*L* is what one pull less would have saved, as the mean over all pulls, in reads as they come the
most. It is the slope of a line: processor time of a read over the producers that it pulled, with
what else makes it long as a second cause, and what every read costs as its start. That second cause
is the items of the page for reads with global coherency, and with per-producer coherency all who
are followed, since who pulls from many follows many. The only pull of a page costs more than one of
several: a page from two places has rows to spare from both. So there are two lines, one of reads
that pull from one producer or none, one of those that pull from one or more, and L is the mean of
their slopes (`Pulls`). Where all producers of a consumer are decided on together, one line is of
all reads.

*H* is what an event has cost the consumers' function of late, what it took to store what came of
it, and the slope of the producers' time over the pushes that they sent. H leaves out the encoding
of events between functions and the shuffle; and events that are no pushes count as if they were.

Old measures are forgotten little by little, and one far off the line counts for little (`Line`).
Until a slope is told apart from chance it is not known. After many reads it is known what it is at
most, and so what the ratio is at least: where pulls cost next to nothing, that counts. (If reads
always pull from all who are followed, the one is not told from the other, and nothing is known.)
The ratio is kept within bounds, and is changed only when it is off by `OFF`, so that no pair
changes its side because of noise.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf, sqrt

LEAST, MOST = 1 / 64, 64.0
"""The ratio's bounds."""
OFF = 0.2
"""The part by which a new ratio must differ from the one in force."""
FIRST = 32
"""Measures that are taken together at the start, without the highest eighth."""
FAR = 4.0
"""Times its usual distance from the line, from which on a measure counts for less."""
SURE = 3.0
"""Times its likely error that a slope must be."""
MORE_OFTEN = 1.5
"""By what factor reads of another coherency must come more often before these are the usual."""
READS, BATCHES = 1 / 2_000, 1 / 200
"""The part that is forgotten with each read, and with each batch."""


@dataclass(slots=True)
class Line:
    """cost = start + slope * x + other * z, by least squares over measures that are forgotten."""

    forgets: float
    weight: float = 0.0
    squares: float = 0.0
    """The sum of the weights' squares: how many measures there are of equal weight."""
    x: float = 0.0
    z: float = 0.0
    cost: float = 0.0
    """Means; and sums of products of the distances from them:"""
    xx: float = 0.0
    xz: float = 0.0
    zz: float = 0.0
    x_cost: float = 0.0
    z_cost: float = 0.0
    scale: float = 0.0
    """How far a measure is off the line, usually."""
    first: list[tuple[float, float, float, float]] = field(default_factory=list)

    def add(self, x: float, z: float, cost: float, weight: float = 1.0) -> None:
        """One more measure, which counts so much."""
        if self.weight:
            self._add(x, z, cost, weight * self._trust(self._off(x, z, cost)))
            return
        self.first.append((cost, x, z, weight))
        if len(self.first) == FIRST:
            for cost, x, z, weight in sorted(self.first)[: FIRST - FIRST // 8]:
                self._add(x, z, cost, weight)
            offs = [self._off(x, z, cost) for cost, x, z, _ in self.first]
            self.scale = sorted(offs)[FIRST // 2]
            self.first.clear()

    @property
    def slope(self) -> float | None:
        """What one more of `x` costs; None if that is not known."""
        if not self.weight or self.xx <= 0:
            return None
        slope, error = self._slope_and_error()
        return slope if slope > SURE * error else None

    @property
    def most(self) -> float | None:
        """What one more of `x` costs at most; None if not even that is known, or there were too few
        measures for it to rest."""
        if not self.weight or self.xx <= 0 or self._count < 1 / (4 * self.forgets):
            return None
        slope, error = self._slope_and_error()
        return max(0.0, slope) + SURE * error if error < inf else None

    def _slope_and_error(self) -> tuple[float, float]:
        """With weights that differ the error is taken for somewhat larger than it is."""
        slope, _, spread = self._slopes()
        if spread <= 0:
            return slope, inf
        return slope, 1.25 * self.scale / sqrt(self._count * spread / self.weight)

    @property
    def _count(self) -> float:
        """How many measures of equal weight there are."""
        return self.weight * self.weight / self.squares

    def _slopes(self) -> tuple[float, float, float]:
        """Of x, of z, and how much x varies apart from z."""
        if self.zz <= 0:
            return (self.x_cost / self.xx if self.xx > 0 else 0.0), 0.0, self.xx
        spread = self.xx - self.xz * self.xz / self.zz
        if spread <= 1e-6 * self.xx:
            return 0.0, self.z_cost / self.zz, 0.0  # one cannot be told from the other
        slope = (self.x_cost - self.z_cost * self.xz / self.zz) / spread
        return slope, (self.z_cost - slope * self.xz) / self.zz, spread

    def _off(self, x: float, z: float, cost: float) -> float:
        slope, other, _ = self._slopes()
        return abs(cost - self.cost - slope * (x - self.x) - other * (z - self.z))

    def _trust(self, off: float) -> float:
        """How much a measure counts; the usual distance follows, slowly if it is far."""
        usual = max(self.scale, 0.01 * abs(self.cost))
        limit = FAR * usual
        self.scale += 10 * self.forgets * (min(off, limit) - self.scale)
        return min(1.0, limit / off) if off else 1.0

    def _add(self, x: float, z: float, cost: float, weight: float) -> None:
        keeps = 1.0 - self.forgets
        before = self.weight * keeps
        self.weight = before + weight
        self.squares = self.squares * keeps * keeps + weight * weight
        by_x, by_z, by_cost = x - self.x, z - self.z, cost - self.cost
        part = weight / self.weight
        self.x, self.z, self.cost = (
            self.x + part * by_x,
            self.z + part * by_z,
            self.cost + part * by_cost,
        )
        joint = before * part
        self.xx = self.xx * keeps + joint * by_x * by_x
        self.xz = self.xz * keeps + joint * by_x * by_z
        self.zz = self.zz * keeps + joint * by_z * by_z
        self.x_cost = self.x_cost * keeps + joint * by_x * by_cost
        self.z_cost = self.z_cost * keeps + joint * by_z * by_cost


class Pulls:
    """What a pull adds to the reads of one coherency."""

    def __init__(self, *, together: bool = False) -> None:
        """`together`: whether all pulls of a read are decided on together."""
        self._together = together
        self._only, self._several = Line(READS), Line(READS)
        self._alone = self._all = 0.0
        """Pulls of late: those that were the only one of their read, and all."""

    def add(self, cpu: float, pulled: int, size: int) -> None:
        """One more read."""
        if pulled <= 1 and not self._together:
            self._only.add(pulled, size, cpu)
        if pulled >= 1 or self._together:  # by weights, so that who pulls from many does not rule
            self._several.add(pulled, size, cpu, 1.0 / max(1, pulled))
        self._alone = self._alone * (1 - READS) + (pulled == 1)
        self._all = self._all * (1 - READS) + pulled

    @property
    def slope(self) -> float | None:
        """What one pull less saves, in the mean; None if that is not known."""
        return self._mean(self._only.slope, self._several.slope)

    @property
    def most(self) -> float | None:
        """The same at most."""
        return self._mean(self._only.most, self._several.most)

    def _mean(self, only: float | None, several: float | None) -> float | None:
        """Of what is known."""
        if only is None or several is None:
            return several if only is None else only
        part = self._alone / self._all
        return part * only + (1 - part) * several


@dataclass(frozen=True, slots=True)
class Spent:
    """What the application has spent on feeds, since its store was made; times in seconds."""

    pushes: int
    """Events that producers have sent to consumers."""
    processed: int
    """Events that producers have taken."""
    producers: float
    """Seconds that they took for them."""
    consumers: float | None
    """Seconds that an event has cost the consumers' function of late, if that is known."""
    taken: int = 0
    """Events that consumers have taken."""
    stored: float = 0.0
    """Seconds of processor time that storing what they changed took."""


class Calibration:
    """H and L from what was measured, and the ratio that is in force."""

    def __init__(self, ratio: float = 1.0, *, together: bool = False) -> None:
        """`ratio` is what the application goes by until another is known; `together`: whether it
        decides for all producers of a consumer, and not pair by pair."""
        self.in_force: float | None = None
        """H/L, or what it is at least; None until it is known, or known to be higher than the
        application's."""
        self._is_bound = False
        self._before, self._together = ratio, together
        self._reads: dict[str, Pulls] = {}
        """By coherency."""
        self._often: dict[str, float] = {}
        """How often each has come of late."""
        self._usual: str | None = None
        """The one that counts."""
        self._sending = Line(BATCHES)
        self._spent: Spent | None = None
        self._taken = self._stored = 0.0
        """Events that consumers took of late, and the seconds that storing took for them."""

    @property
    def low(self) -> float | None:
        """Seconds that one producer less to pull from saves."""
        return None if self._usual is None else self._reads[self._usual].slope

    @property
    def low_at_most(self) -> float | None:
        """What that is at most."""
        return None if self._usual is None else self._reads[self._usual].most

    @property
    def high(self) -> float | None:
        """Seconds that pushing one post to one consumer takes."""
        if self._spent is None or not self._spent.consumers:
            return None
        storing = self._stored / self._taken if self._taken else 0.0
        return self._spent.consumers + storing + (self._sending.slope or 0.0)

    def read_took(self, cpu: float, pulled: int, size: int, coherency: str = "global") -> None:
        """A read took so much processor time, with so many producers pulled; `size` is what else
        makes it long."""
        if coherency not in self._reads:
            self._reads[coherency] = Pulls(together=self._together)
        self._reads[coherency].add(cpu, pulled, size)
        self._often = {one: often * (1 - READS) for one, often in self._often.items()}
        self._often[coherency] = self._often.get(coherency, 0.0) + 1.0
        if self._often[coherency] > MORE_OFTEN * self._often.get(self._usual or "", 0.0):
            self._usual = coherency

    def spent(self, now: Spent) -> None:
        """The application has gone on; of another store nothing known before is compared with."""
        before, self._spent = self._spent, now
        if before is None or now.processed <= before.processed or now.pushes < before.pushes:
            return
        pushes, processed = now.pushes - before.pushes, now.processed - before.processed
        self._sending.add(pushes, processed, now.producers - before.producers)
        if now.taken >= before.taken:
            self._taken = self._taken * (1 - BATCHES) + now.taken - before.taken
            self._stored = self._stored * (1 - BATCHES) + now.stored - before.stored

    def settled(self) -> float | None:
        """The ratio that is in force from now on."""
        high, low, most = self.high, self.low, self.low_at_most
        if high is not None and low is not None:
            self.in_force, self._is_bound = kept(self.in_force, high / low), False
        elif high is not None and most:
            self._bound(min(MOST, high / most))
        return self.in_force

    def _bound(self, least: float) -> None:
        """The ratio is no less than this: more than what is in force, or another bound is."""
        known = self._before if self.in_force is None or self._is_bound else self.in_force
        if least > known:
            self.in_force, self._is_bound = kept(self.in_force, least), True


def kept(before: float | None, found: float) -> float:
    """The ratio in force after another was found.

    >>> kept(None, 3.0), kept(3.0, 3.5), kept(3.0, 3.7), kept(60.0, 500.0)
    (3.0, 3.0, 3.7, 60.0)
    """
    found = min(MOST, max(LEAST, found))
    if before is not None and before / (1 + OFF) < found < before * (1 + OFF):
        return before
    return found
