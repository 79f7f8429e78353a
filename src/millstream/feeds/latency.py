"""Reads within a target: how many more pushes than the cheapest it takes (Feeding Frenzy, 3.3).

`Steps` is the adaptive algorithm of `adapting` for a live system, which has no list of its pairs
and sees the effect of a step only with the next posts and views: so it decides once in `SETTLE`
seconds, from the reads since, and goes back only after several calm times in a row; after a step
back that was one too many it waits twice as long, so that it comes to rest.

A step stands for

- *per pair*: the ratio by which pairs are decided is `FACTOR` times lower, so that the next pairs
  in the order of query rate over event rate turn to push. Never above H/L: what is pushed by
  MinCost stays on push;
- *per consumer*: one more sixth of the consumers that pull, those first that look most often for
  how many producers they pull, have all on push (`Wholesale`).
"""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass, replace
from math import ceil

FACTOR = 2.0
"""What a step lowers the ratio by: a little more than the hysteresis of pairs."""
MOST_STEPS = 6
SETTLE = 30.0
"""Seconds between two decisions."""
FEWEST = 100
"""Reads that a decision needs."""
CALM = 0.7
"""The part of the target below which reads are fast enough to go back."""
PATIENCE, MOST_PATIENCE = 4, 128
"""Calm decisions in a row before a step back."""
KEPT = 4_096
"""Reads that are remembered."""
MOST_KNOWN = 20_000
"""Consumers that are remembered."""


@dataclass(frozen=True, slots=True)
class Steps:
    """How many steps are taken, and what was seen since the last."""

    taken: int = 0
    calm: int = 0
    patience: int = PATIENCE
    went_back: bool = False

    def decided(self, latency: float, target: float) -> Steps:
        """After reads of late took so long."""
        if latency > target:
            patience = min(MOST_PATIENCE, 2 * self.patience) if self.went_back else self.patience
            return Steps(min(MOST_STEPS, self.taken + 1), 0, patience)
        if latency >= CALM * target or not self.taken:
            return replace(self, calm=0)
        if self.calm + 1 < self.patience:
            return replace(self, calm=self.calm + 1)
        return Steps(self.taken - 1, 0, self.patience, went_back=True)


class Latencies:
    """What the last reads took, in seconds."""

    def __init__(self) -> None:
        self._took: deque[float] = deque(maxlen=KEPT)
        self._fresh = 0

    def add(self, seconds: float) -> None:
        self._took.append(seconds)
        self._fresh = min(KEPT, self._fresh + 1)

    def percentiles(self, *asked: float) -> list[float | None]:
        """So many percent of the last reads took no longer."""
        took = sorted(self._took)
        return [took[_place(len(took), one)] if took else None for one in asked]

    def since_decision(self, percentile: float) -> float | None:
        """The same for the reads since it was last known; None if they are too few."""
        if self._fresh < FEWEST:
            return None
        took = sorted(list(self._took)[-self._fresh :])
        self._fresh = 0
        return took[_place(len(took), percentile)]


class Wholesale:
    """The consumers that have all on push, the first in the order first."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, list[float]] = OrderedDict()
        """By consumer, the last one that read at the end: reads, and producers pulled in the last
        one that pulled any."""
        self._chosen: dict[str, None] = {}

    def __contains__(self, consumer: str) -> bool:
        return consumer in self._chosen

    def __len__(self) -> int:
        return len(self._chosen)

    def read(self, consumer: str, pulled: int) -> None:
        """A consumer has read, and pulled so many producers for it."""
        known = self._known.setdefault(consumer, [0.0, 0.0])
        self._known.move_to_end(consumer)
        known[0] += 1.0
        known[1] = pulled or known[1]
        if len(self._known) > MOST_KNOWN:
            gone, _ = self._known.popitem(last=False)
            self._chosen.pop(gone, None)

    def choose(self, steps: int) -> None:
        """As many as a number of steps stands for; the last chosen are the first to go."""
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
            known[0] *= 0.9  # what was read long ago counts less


def _place(count: int, percentile: float) -> int:
    return max(0, ceil(count * percentile / 100) - 1)
