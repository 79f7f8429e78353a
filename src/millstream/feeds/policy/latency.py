"""Keeps reads within a latency target by pushing more than the cheapest choice (Feeding Frenzy,
3.3).

`Steps` is the paper's adaptive algorithm for a live system, which has no list of its pairs and sees
the effect of a step only with the next posts and views. So it decides once in `SETTLE` seconds,
from the reads since the last decision, and steps back only after several calm decisions in a row.
If a step back turns out to be one too many, it doubles its patience, so that it settles.

The effect of a step depends on the strategy:

- *per pair*: the ratio by which pairs are decided is divided by `FACTOR`, so that the next pairs in
  the order of query rate over event rate change to push. The ratio is never above H/L: pairs that
  MinCost pushes stay on push;
- *per consumer*: another sixth of the consumers that pull get all of their producers on push
  (`Wholesale`). Consumers with the most views for each producer pulled come first.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass, replace
from math import ceil

FACTOR = 2.0
"""A step divides the ratio by this: a little more than the hysteresis of pairs."""
MOST_STEPS = 6
SETTLE = 30.0
"""Seconds between two decisions."""
FEWEST = 100
"""The minimum number of reads for a decision."""
CALM = 0.7
"""Reads below this part of the target are fast enough to step back."""
PATIENCE, MOST_PATIENCE = 4, 128
"""Calm decisions in a row before a step back."""
KEPT = 4_096
"""The number of reads that are remembered."""
MOST_KNOWN = 20_000
"""The number of consumers that are remembered."""


@dataclass(frozen=True, slots=True)
class Steps:
    """The number of steps taken, and the calm decisions since the last one."""

    taken: int = 0
    calm: int = 0
    patience: int = PATIENCE
    went_back: bool = False

    def decided(self, latency: float, target: float) -> Steps:
        """Returns the state after recent reads took `latency`."""
        if latency > target:
            patience = min(MOST_PATIENCE, 2 * self.patience) if self.went_back else self.patience
            return Steps(min(MOST_STEPS, self.taken + 1), 0, patience)
        if latency >= CALM * target or not self.taken:
            return replace(self, calm=0)
        if self.calm + 1 < self.patience:
            return replace(self, calm=self.calm + 1)
        return Steps(self.taken - 1, 0, self.patience, went_back=True)


class Latencies:
    """The durations of the last reads, in seconds."""

    def __init__(self) -> None:
        self._took: deque[float] = deque(maxlen=KEPT)
        self._fresh = 0

    def add(self, seconds: float) -> None:
        self._took.append(seconds)
        self._fresh = min(KEPT, self._fresh + 1)

    def percentiles(self, *asked: float) -> list[float | None]:
        """The durations that the given percentages of the last reads did not exceed."""
        took = sorted(self._took)
        return [took[_place(len(took), percent)] if took else None for percent in asked]

    def since_decision(self, percentile: float) -> float | None:
        """The percentile of the reads since the last call that returned one; None if they are too
        few."""
        if self._fresh < FEWEST:
            return None
        took = sorted(list(self._took)[-self._fresh :])
        self._fresh = 0
        return took[_place(len(took), percentile)]


class Wholesale:
    """The consumers that have all of their producers on push, in the order of choice."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, list[float]] = OrderedDict()
        """By consumer, the most recent reader last: its number of reads, and the producers pulled
        by its last read that pulled any."""
        self._chosen: dict[str, None] = {}

    def __contains__(self, consumer: str) -> bool:
        return consumer in self._chosen

    def __len__(self) -> int:
        return len(self._chosen)

    def read(self, consumer: str, pulled: int) -> None:
        """Records a read that pulled from `pulled` producers."""
        known = self._known.setdefault(consumer, [0.0, 0.0])
        self._known.move_to_end(consumer)
        known[0] += 1.0
        known[1] = pulled or known[1]
        if len(self._known) > MOST_KNOWN:
            forgotten, _ = self._known.popitem(last=False)
            self._chosen.pop(forgotten, None)

    def choose(self, steps: int) -> None:
        """Chooses as many consumers as `steps` stands for. The last chosen are dropped first."""
        pulling = {name: reads / pulled for name, (reads, pulled) in self._known.items() if pulled}
        wanted = ceil(len(pulling) * steps / MOST_STEPS)
        while len(self._chosen) > wanted:
            self._chosen.popitem()
        if len(self._chosen) < wanted:
            order = sorted(pulling, key=lambda name: (-pulling[name], name))
            rest = (name for name in order if name not in self._chosen)
            self._chosen |= dict.fromkeys(
                name for name, _ in zip(rest, range(wanted - len(self._chosen)), strict=False)
            )
        for known in self._known.values():
            known[0] *= 0.9  # older reads count less


def _place(count: int, percentile: float) -> int:
    return max(0, ceil(count * percentile / 100) - 1)
