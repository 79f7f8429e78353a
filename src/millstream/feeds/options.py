"""What an application says of its feeds."""

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
class Options:
    """How feeds are kept and read; a request may ask for another coherency, `limit`, `k`, `t`."""

    coherency: str = "global"
    limit: int = 20
    """Items of a page."""
    k: int = 5
    """Items of one producer, with per-producer coherency."""
    t: Duration = "7d"
    """How old a post may be to be sure of a place beside others (k,t-diversity)."""
    keep: int = 400
    """Items that a consumer's materialised feed keeps; older ones are pulled."""
    backfill: int = 50
    """Posts that are pushed at once when a pair turns to push; older ones are pulled."""
    pushes: int = 5_000
    """Pushes, of a post to a follower, that a producer makes in one go; the rest come later."""
    memory: Duration = "1d"
    """In how long a rate forgets half of what it knows."""
    ratio: float = 1.0
    """H/L, what a push costs beside a pull, until it is measured."""
    policy: Policy = "hybrid"
    decide: Strategy = "per-pair"
    """Whether each pair is decided by itself, or all producers of a consumer together."""
    latency: Duration | None = None
    """What the slow reads (`percentile`) may take; more is pushed until they do."""
    percentile: float = 95.0
    strategy: Strategy = "per-pair"

    def __post_init__(self) -> None:
        for name, known in (
            ("coherency", COHERENCIES),
            ("policy", POLICIES),
            ("decide", STRATEGIES),
            ("strategy", STRATEGIES),
        ):
            got = getattr(self, name)
            if got not in known:
                hint = did_you_mean(str(got), known)
                raise DefinitionError(
                    f"feeds: {name} must be one that is known; got {got!r}; {hint}"
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
            given = getattr(self, name)
            if given is not None and microseconds(given, f"feeds: {name}") <= 0:
                raise DefinitionError(f"feeds: {name} must be longer than nothing; got {given!r}")

    @property
    def decides_together(self) -> bool:
        """Whether a consumer decides for all of its producers (Lemma 2), not each pair by itself
        (Lemma 1)."""
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
