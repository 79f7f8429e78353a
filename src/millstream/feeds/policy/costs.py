"""Measures what a push and a pull cost, and derives their ratio. Pure: times are arguments.

*L* is the marginal cost of a pull, averaged over all pulls, in the most frequent kind of read. It
is the slope of a regression line: the processor time of a read over the number of producers that it
pulled. The intercept is the cost of every read, and a second variable covers the other cause of
long reads. For reads with global coherency that is the number of items on the page. With
per-producer coherency it is the number of followed producers, since consumers that pull from many
also follow many. A single pull costs more than one of several: a page from two places reads spare
rows from both. So there are two lines, one for reads that pull from at most one producer and one
for reads that pull from at least one, and L is the mean of their slopes (`Pulls`). If all producers
of a consumer are decided on together, one line covers all reads.

*H* is the recent cost of an event in the consumers' function, plus the cost of storing its results,
plus the slope of the producers' time over the number of pushes that they sent. H leaves out the
encoding of events between functions and the shuffle. Events that are not pushes count as if they
were.

Old measurements are forgotten gradually, and outliers get a low weight (`CostLine`). A slope is
unknown until it is significant. After many reads an upper bound of L is known, which gives a lower
bound of the ratio. This matters if pulls cost next to nothing. (If reads always pull from all
followed producers, the two variables cannot be separated, and nothing is known.) The ratio is kept
within bounds, and changes only when it is off by `OFF`, so that noise does not make pairs change
side.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf, sqrt

LEAST, MOST = 1 / 64, 64.0
"""The ratio's bounds."""
OFF = 0.2
"""A new ratio must differ from the one in force by this part."""
FIRST = 32
"""The first measurements are added as a group, without the highest eighth."""
FAR = 4.0
"""A measurement that is off the line by more than this many usual distances gets a lower weight."""
SURE = 3.0
"""A slope must be this many times its likely error."""
MORE_OFTEN = 1.5
"""Reads of another coherency must be this many times as frequent to become the usual ones."""
READS, BATCHES = 1 / 2_000, 1 / 200
"""The part that is forgotten with each read, and with each batch."""


@dataclass(slots=True)
class CostLine:
    """cost = start + slope * x + other * z, by least squares with exponential forgetting."""

    forgets: float
    weight: float = 0.0
    squares: float = 0.0
    """The sum of the squared weights; gives the number of measurements of equal weight."""
    x: float = 0.0
    z: float = 0.0
    cost: float = 0.0
    """`x`, `z` and `cost` are means. The next five are sums of products of the distances from them.
    """
    xx: float = 0.0
    xz: float = 0.0
    zz: float = 0.0
    x_cost: float = 0.0
    z_cost: float = 0.0
    scale: float = 0.0
    """The usual distance of a measurement from the line."""
    first: list[tuple[float, float, float, float]] = field(default_factory=list)

    def add(self, x: float, z: float, cost: float, weight: float = 1.0) -> None:
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
        """The cost of one more `x`; None if it is not known."""
        if not self.weight or self.xx <= 0:
            return None
        slope, error = self._slope_and_error()
        return slope if slope > SURE * error else None

    @property
    def most(self) -> float | None:
        """An upper bound of the cost of one more `x`. None if it is not known, or if there were too
        few measurements for it to be stable."""
        if not self.weight or self.xx <= 0 or self._count < 1 / (4 * self.forgets):
            return None
        slope, error = self._slope_and_error()
        return max(0.0, slope) + SURE * error if error < inf else None

    def _slope_and_error(self) -> tuple[float, float]:
        """The slope of `x` and its error. Unequal weights make the error somewhat too large."""
        slope, _, spread = self._slopes()
        if spread <= 0:
            return slope, inf
        return slope, 1.25 * self.scale / sqrt(self._count * spread / self.weight)

    @property
    def _count(self) -> float:
        """The number of measurements of equal weight."""
        return self.weight * self.weight / self.squares

    def _slopes(self) -> tuple[float, float, float]:
        """The slopes of x and z, and how much x varies independently of z."""
        if self.zz <= 0:
            return (self.x_cost / self.xx if self.xx > 0 else 0.0), 0.0, self.xx
        spread = self.xx - self.xz * self.xz / self.zz
        if spread <= 1e-6 * self.xx:
            return 0.0, self.z_cost / self.zz, 0.0  # x and z cannot be separated
        slope = (self.x_cost - self.z_cost * self.xz / self.zz) / spread
        return slope, (self.z_cost - slope * self.xz) / self.zz, spread

    def _off(self, x: float, z: float, cost: float) -> float:
        slope, other, _ = self._slopes()
        return abs(cost - self.cost - slope * (x - self.x) - other * (z - self.z))

    def _trust(self, off: float) -> float:
        """Returns the weight of a measurement, and updates the usual distance, slowly for an
        outlier."""
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
    """The cost that a pull adds to the reads of one coherency."""

    def __init__(self, *, together: bool = False) -> None:
        """`together` is True if all pulls of a read are decided on together."""
        self._together = together
        self._only, self._several = CostLine(READS), CostLine(READS)
        self._alone = self._all = 0.0
        """Recent pulls: those that were the only one of their read, and all."""

    def add(self, cpu: float, pulled: int, size: int) -> None:
        if pulled <= 1 and not self._together:
            self._only.add(pulled, size, cpu)
        if pulled >= 1 or self._together:  # weighted, so that reads with many pulls do not dominate
            self._several.add(pulled, size, cpu, 1.0 / max(1, pulled))
        self._alone = self._alone * (1 - READS) + (pulled == 1)
        self._all = self._all * (1 - READS) + pulled

    @property
    def slope(self) -> float | None:
        """The mean saving of avoiding one pull; None if it is not known."""
        return self._mean(self._only.slope, self._several.slope)

    @property
    def most(self) -> float | None:
        """An upper bound of the mean saving; None if it is not known."""
        return self._mean(self._only.most, self._several.most)

    def _mean(self, only: float | None, several: float | None) -> float | None:
        """The mean of the two, weighted by how often each applies; the known one if the other is
        None."""
        if only is None or several is None:
            return several if only is None else only
        part = self._alone / self._all
        return part * only + (1 - part) * several


@dataclass(frozen=True, slots=True)
class Spent:
    """The cost of feeds since the store was created. Times are in seconds."""

    pushes: int
    """Events sent from producers to consumers."""
    processed: int
    """Events processed by producers."""
    producers: float
    """Seconds that producers needed for these events."""
    consumers: float | None
    """The recent cost of an event in the consumers' function, in seconds, if it is known."""
    taken: int = 0
    """Events processed by consumers."""
    stored: float = 0.0
    """Seconds of processor time spent on storing the consumers' changes."""


class Calibration:
    """H and L as measured, and the ratio that is in force."""

    def __init__(self, ratio: float = 1.0, *, together: bool = False) -> None:
        """`ratio` is what the application uses until another is known. `together` is True if it
        decides for all producers of a consumer at once, not pair by pair."""
        self.in_force: float | None = None
        """H/L or a lower bound of it. None until it is known, or known to be higher than the
        application's."""
        self._is_bound = False
        self._before, self._together = ratio, together
        self._reads: dict[str, Pulls] = {}
        """By coherency."""
        self._often: dict[str, float] = {}
        """The recent frequency of each coherency."""
        self._usual: str | None = None
        """The coherency whose reads define L."""
        self._sending = CostLine(BATCHES)
        self._spent: Spent | None = None
        self._taken = self._stored = 0.0
        """Events that consumers processed recently, and the seconds that storing took for them."""

    @property
    def low(self) -> float | None:
        """L: the seconds that are saved by pulling from one producer fewer."""
        return None if self._usual is None else self._reads[self._usual].slope

    @property
    def low_at_most(self) -> float | None:
        """An upper bound of `low`."""
        return None if self._usual is None else self._reads[self._usual].most

    @property
    def high(self) -> float | None:
        """H: the seconds that pushing one post to one consumer takes."""
        if self._spent is None or not self._spent.consumers:
            return None
        storing = self._stored / self._taken if self._taken else 0.0
        return self._spent.consumers + storing + (self._sending.slope or 0.0)

    def read_took(self, cpu: float, pulled: int, size: int, coherency: str = "global") -> None:
        """Adds the processor time of a read that pulled from `pulled` producers. `size` is the
        other cause of long reads."""
        if coherency not in self._reads:
            self._reads[coherency] = Pulls(together=self._together)
        self._reads[coherency].add(cpu, pulled, size)
        self._often = {name: often * (1 - READS) for name, often in self._often.items()}
        self._often[coherency] = self._often.get(coherency, 0.0) + 1.0
        if self._often[coherency] > MORE_OFTEN * self._often.get(self._usual or "", 0.0):
            self._usual = coherency

    def spent(self, now: Spent) -> None:
        """Adds the totals after more batches. Totals of a different store are not compared with
        earlier ones."""
        before, self._spent = self._spent, now
        if before is None or now.processed <= before.processed or now.pushes < before.pushes:
            return
        pushes, processed = now.pushes - before.pushes, now.processed - before.processed
        self._sending.add(pushes, processed, now.producers - before.producers)
        if now.taken >= before.taken:
            self._taken = self._taken * (1 - BATCHES) + now.taken - before.taken
            self._stored = self._stored * (1 - BATCHES) + now.stored - before.stored

    def settled(self) -> float | None:
        """Updates and returns the ratio in force."""
        high, low, most = self.high, self.low, self.low_at_most
        if high is not None and low is not None:
            self.in_force, self._is_bound = kept(self.in_force, high / low), False
        elif high is not None and most:
            self._bound(min(MOST, high / most))
        return self.in_force

    def _bound(self, least: float) -> None:
        """Applies a lower bound of the ratio, if it exceeds the known ratio or replaces another
        bound."""
        known = self._before if self.in_force is None or self._is_bound else self.in_force
        if least > known:
            self.in_force, self._is_bound = kept(self.in_force, least), True


def kept(before: float | None, measured: float) -> float:
    """The ratio in force after another was measured.

    >>> kept(None, 3.0), kept(3.0, 3.5), kept(3.0, 3.7), kept(60.0, 500.0)
    (3.0, 3.0, 3.7, 60.0)
    """
    measured = min(MOST, max(LEAST, measured))
    if before is not None and before / (1 + OFF) < measured < before * (1 + OFF):
        return before
    return measured
