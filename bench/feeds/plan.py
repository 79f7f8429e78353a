"""The plan of the experiments: their sizes and parameters."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from millstream.stores.home import SHARDS

RATIO = 16.0
"""Queries for each event in the paper's baseline, and in most experiments."""


@dataclass(frozen=True, slots=True)
class Measured:
    """The parameters that are the same for all policies."""

    scale: float = 0.1
    """The size, relative to the paper's network."""
    posts: int = 6_000
    reads: int = 6_000
    """A sample: their mean is taken for that of all queries."""
    rounds: int = 12
    """In which posts and reads come, each policy in turn."""
    batch: int = 100
    """Posts of a batch: for a tenth of the network a tenth of 1,000, so that as few of them meet at
    one consumer as there."""
    aged: int = 3_000
    """Posts before all that. A store that was just written has its free room in one piece, and the
    first batches are cheaper for it: they are written in one go."""
    seed: int = 1
    full: bool = True
    """True if feeds start full, so that each push evicts an item."""
    diverse: bool = False
    """True if feeds are read with per-producer coherency, false for global. In both cases each pair
    is decided by itself."""
    laid_at_once: int = 2
    """Networks that are laid at the same time, for the memory that each takes."""

    @property
    def shards(self) -> int:
        """For a part of the network a part of the shards, each as large as with all of it."""
        return shards_of(self.scale)


def shards_of(scale: float) -> int:
    """The shards for a part of the paper's network.

    >>> shards_of(1.0), shards_of(0.1), shards_of(0.003)
    (16, 2, 1)
    """
    return max(1, round(SHARDS * scale))


@dataclass(frozen=True, slots=True)
class Ratios:
    """Figure 4: more and more queries for each event."""

    of: Measured = field(default_factory=Measured)
    ratios: tuple[float, ...] = (1, 2, 4, 8, 16, 32, 64)

    def at(self, ratio: float) -> Measured:
        """More of everything where policies differ by less."""
        times = max(1.0, ratio / RATIO)
        posts, reads = round(self.of.posts * times), round(self.of.reads * times)
        return replace(self.of, posts=posts, reads=reads, rounds=round(self.of.rounds * times))


@dataclass(frozen=True, slots=True)
class Full:
    """A point of Figure 4 at the paper's size."""

    of: Measured = field(
        default_factory=lambda: Measured(1.0, 18_000, 36_000, 18, 1_000, 20_000, laid_at_once=1)
    )
    ratio: float = RATIO


@dataclass(frozen=True, slots=True)
class Diverse:
    """The same at some ratios, read with per-producer coherency: with short feeds, of which each
    keeps all of its items, since a page may need the newest of every producer."""

    of: Measured = field(default_factory=lambda: Measured(full=False, diverse=True))
    ratios: tuple[float, ...] = (4, 16, 64)


@dataclass(frozen=True, slots=True)
class Skews:
    """Figure 5: rates that are more and more skewed; factors of the Zipf parameters."""

    of: Measured = field(default_factory=Measured)
    factors: tuple[float, ...] = (0.0, 0.5, 1.0, 1.5)
    ratio: float = RATIO


@dataclass(frozen=True, slots=True)
class Deciding:
    """Each pair decided by itself or all of a consumer together; factors of H/L as thresholds."""

    of: Measured = field(default_factory=Measured)
    factors: tuple[float, ...] = (0.5, 0.75, 1, 1.5)
    ratio: float = RATIO


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Figures 6 and 7: the push threshold turned from all pull to all push; factors of H/L."""

    of: Measured = field(default_factory=Measured)
    factors: tuple[float, ...] = (16, 4, 2, 1, 0.5, 0.25, 0.06, 0.01)
    ratio: float = RATIO


@dataclass(frozen=True, slots=True)
class Strategies:
    """Figure 8: the same latency by pairs or by whole consumers."""

    of: Measured = field(default_factory=Measured)
    factors: tuple[float, ...] = (1, 0.6, 0.3, 0.15, 0.05)
    """Thresholds, as factors of H/L: as many queries' pairs are moved by either."""
    ratio: float = 8.0


@dataclass(frozen=True, slots=True)
class FanOuts:
    """Figure 9: the same producers and consumers with more and more pairs, none skewed."""

    of: Measured = field(default_factory=lambda: Measured(posts=2_000, reads=3_000, rounds=1))
    producers: int = 2_000
    consumers: int = 6_000
    fan_outs: tuple[int, ...] = (5, 15, 45, 90)
    ratio: float = 4.0


@dataclass(frozen=True, slots=True)
class Flash:
    """Figure 10: some producers that seldom post do so all the time, and are followed by many."""

    scale: float = 0.5
    seed: int = 1
    step: float = 4.0
    """Seconds of simulated time that a point of the figure is of."""
    before: int = 15
    """Points of the baseline."""
    after: int = 30
    part: float = 0.001
    """The fraction of all producers."""
    fan_out: int = 100
    every: float = 4.0
    """Seconds from one post of a flash to the next."""
    aged: int = 80
    """Steps before all that; see `Measured`."""
    ratio: float = RATIO


@dataclass(frozen=True, slots=True)
class Followed:
    """A post of a producer with more and more followers, half of them on push."""

    counts: tuple[int, ...] = (20_000, 200_000, 2_000_000)
    batch: int = 5_000
    """Records of a batch, while followers come."""
    pushes: int = 5_000
    """In one go; see `ms.feeds.Feeds`."""
    reads: int = 300
    """Feeds that are compared before the restart, after it and at the end."""
    seed: int = 1


@dataclass(frozen=True, slots=True)
class Live:
    """Reads over HTTP from a server on one core, while posts come in."""

    producers: int = 2_000
    consumers: int = 6_000
    pairs: int = 30_000
    posts_per_s: int = 1_000
    reads_per_s: int = 100
    seconds: float = 60.0
    warm_up: float = 10.0


@dataclass(frozen=True, slots=True)
class Correct:
    """Reads that are compared with brute force, among all that changes feeds and all that fails."""

    reads: int = 100_000
    producers: int = 60
    consumers: int = 40
    batches: int = 300
    records: int = 40
    """Records of a batch."""
    seed: int = 1


@dataclass(frozen=True, slots=True)
class Plan:
    """All of `make bench-feeds`."""

    ratios: Ratios = field(default_factory=Ratios)
    full: Full = field(default_factory=Full)
    diverse: Diverse = field(default_factory=Diverse)
    deciding: Deciding = field(default_factory=Deciding)
    skews: Skews = field(default_factory=Skews)
    thresholds: Thresholds = field(default_factory=Thresholds)
    strategies: Strategies = field(default_factory=Strategies)
    fan_outs: FanOuts = field(default_factory=FanOuts)
    flash: Flash = field(default_factory=Flash)
    followed: Followed = field(default_factory=Followed)
    live: Live = field(default_factory=Live)
    correct: Correct = field(default_factory=Correct)


_SMALL = Measured(0.003, 100, 150, 1, aged=100)
QUICK = Plan(
    ratios=Ratios(_SMALL, (4, 16)),
    full=Full(Measured(0.004, 100, 150, 1, aged=100)),
    diverse=Diverse(Measured(0.003, 100, 150, 1, aged=100, diverse=True), (16,)),
    deciding=Deciding(_SMALL, (1,)),
    skews=Skews(_SMALL, (1.0,)),
    thresholds=Thresholds(_SMALL, (4, 1, 0.05)),
    strategies=Strategies(_SMALL, (1, 0.2)),
    fan_outs=FanOuts(_SMALL, 60, 120, (5, 15)),
    flash=Flash(0.005, before=3, after=14, part=0.005, aged=3),
    followed=Followed((200, 2_000), 500, 50, 20),
    live=Live(40, 60, 200, 100, 20, 3.0, 1.0),
    correct=Correct(300, 12, 8, 16, 15),
)
