"""The settings of an application's feeds."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from millstream.errors import DefinitionError
from millstream.model.duration import Duration, microseconds
from millstream.nearest import did_you_mean

Policy = Literal["hybrid", "push", "pull"]
Strategy = Literal["per-pair", "per-consumer"]
COHERENCIES = ("global", "per-producer")
POLICIES = ("hybrid", "push", "pull")
STRATEGIES: tuple[Strategy, ...] = ("per-pair", "per-consumer")


@dataclass(frozen=True, kw_only=True)
class FeedOptions:
    """Settings for storing and reading feeds. A request may override coherency, `limit`, `k` and
    `t`."""

    coherency: str = "global"
    limit: int = 20
    """The number of items on a page."""
    k: int = 5
    """The maximum number of items of one producer, with per-producer coherency."""
    t: Duration = "7d"
    """A producer's newest post is shown ahead of other posts only if it is no older than this
    (k,t-diversity)."""
    keep: int = 400
    """The number of items that a consumer's materialised feed keeps. Older posts are pulled."""
    backfill: int = 50
    """The number of posts that are pushed when a pair changes to push. Older posts are pulled."""
    pushes: int = 5_000
    """The maximum number of pushes that a producer makes for one event, each of one post to one
    follower. The rest follow later."""
    memory: Duration = "1d"
    """The half-life of a rate."""
    ratio: float = 1.0
    """H/L, the cost of a push relative to a pull, until it is measured."""
    policy: Policy = "hybrid"
    decide: Strategy = "per-pair"
    """`per-pair` decides each pair on its own, `per-consumer` all producers of a consumer
    together."""
    latency: Duration | None = None
    """The target for slow reads (at `percentile`). More pairs are pushed until reads meet it."""
    percentile: float = 95.0
    strategy: Strategy = "per-pair"

    def __post_init__(self) -> None:
        for name, choices in (
            ("coherency", COHERENCIES),
            ("policy", POLICIES),
            ("decide", STRATEGIES),
            ("strategy", STRATEGIES),
        ):
            value = getattr(self, name)
            if value not in choices:
                hint = did_you_mean(str(value), choices)
                raise DefinitionError(
                    f"feeds: {name} must be one that is known; got {value!r}; {hint}"
                )
        for name in ("limit", "k", "keep", "pushes"):
            _check_whole(name, getattr(self, name), 1)
        _check_whole("backfill", self.backfill, 0)
        if not isinstance(self.ratio, int | float) or not 0 < self.ratio < float("inf"):
            raise DefinitionError(f"feeds: ratio must be a number over 0; got {self.ratio!r}")
        if not isinstance(self.percentile, int | float) or not 0 < self.percentile < 100:
            raise DefinitionError(
                f"feeds: percentile must be between 0 and 100; got {self.percentile!r}"
            )
        for name in ("t", "memory", "latency"):
            duration = getattr(self, name)
            if duration is not None and microseconds(duration, f"feeds: {name}") <= 0:
                raise DefinitionError(f"feeds: {name} must be positive; got {duration!r}")

    @property
    def decides_together(self) -> bool:
        """True if a consumer decides for all of its producers (Lemma 2), False if each pair is
        decided on its own (Lemma 1)."""
        return self.decide == "per-consumer"

    @cached_property
    def memory_us(self) -> int:
        return microseconds(self.memory, "feeds: memory")

    @cached_property
    def t_us(self) -> int:
        return microseconds(self.t, "feeds: t")


def _check_whole(name: str, got: Any, least: int) -> None:
    if isinstance(got, bool) or not isinstance(got, int) or got < least:
        raise DefinitionError(f"feeds: {name} must be a whole number from {least}; got {got!r}")
