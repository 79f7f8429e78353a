"""Decides after a try: done, retry later, or a dead letter. Pure.

The pauses double from half a second to a minute. Each is shortened by up to a half at random, so
that many senders do not retry at the same time. If the receiver says how long to wait, the pause is
at least that long. A record is given up after a number of tries, or when the next try would come
after its patience is over. A pause is never shortened to fit the patience, since the receiver may
have asked for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Literal

from millstream.counted_nouns import counted
from millstream.retry_pause import doubled

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 60.0
NOT_NOW = frozenset({408, 425, 429})
"""The HTTP statuses below 500 that are worth a retry."""


@dataclass(frozen=True, slots=True)
class Policy:
    """The limits for trying one record."""

    tries: int = 8
    patience: float | None = 3600.0
    """Seconds, pauses included. None: no limit other than `tries`."""


@dataclass(frozen=True, slots=True)
class AttemptOutcome:
    """The result of a try: carried out, worth another try, or refused for good."""

    kind: Literal["done", "again", "never"]
    error: str = ""
    after: float | None = None
    """Seconds that the receiver asked us to wait."""


@dataclass(frozen=True, slots=True)
class Done:
    """The record is carried out."""


@dataclass(frozen=True, slots=True)
class Again:
    """Retry after this many seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Dead:
    """Give up: the record becomes a dead letter."""

    error: str


Decision = Done | Again | Dead


def decide(
    outcome: AttemptOutcome, tries: int, spent: float, policy: Policy, chance: float
) -> Decision:
    """Decides what to do after try number `tries`, `spent` seconds since the first began.

    `chance`, from 0 up to 1, is the random part.

    >>> policy = Policy(tries=3, patience=60)
    >>> decide(AttemptOutcome("again", "HTTP 503"), 1, 0.1, policy, chance=0.0)
    Again(seconds=0.5)
    >>> decide(AttemptOutcome("again", "HTTP 429", after=7), 2, 1.0, policy, chance=0.5)
    Again(seconds=7)
    >>> decide(AttemptOutcome("again", "HTTP 503"), 3, 2.0, policy, chance=0.0)
    Dead(error='HTTP 503 (given up after 3 tries)')
    """
    if outcome.kind == "done":
        return Done()
    if outcome.kind == "never":
        return Dead(outcome.error)
    if tries >= policy.tries:
        return Dead(f"{outcome.error} (given up after {_times(tries)})")
    own_pause = doubled(tries, FIRST_PAUSE, LONGEST_PAUSE) * (1 - chance / 2)
    pause = own_pause if outcome.after is None else max(own_pause, outcome.after)
    if policy.patience is not None and spent + pause > policy.patience:
        return Dead(
            f"{outcome.error} (given up after {_times(tries)}: the next would come after more than "
            f"{policy.patience:g} s)"
        )
    return Again(pause)


def _times(tries: int) -> str:
    return counted(tries, "try", "tries")


def answer_means(status: int, said: str, retry_after: str | None, now: float) -> AttemptOutcome:
    """Converts an HTTP answer to an outcome. `said` is the answer's text, `now` the time in
    seconds.

    >>> answer_means(204, "", None, 0).kind, answer_means(404, "", None, 0).kind
    ('done', 'never')
    >>> answer_means(503, "Busy", "3", 0)
    AttemptOutcome(kind='again', error='HTTP 503: Busy', after=3.0)
    """
    if 200 <= status < 300:
        return AttemptOutcome("done")
    error = f"HTTP {status}: {said}" if said else f"HTTP {status}"
    if status in NOT_NOW or status >= 500:
        return AttemptOutcome("again", error, seconds_of(retry_after, now))
    if 300 <= status < 400:
        error += "; a redirection is not followed: name the address that it points to"
    return AttemptOutcome("never", error)


def seconds_of(retry_after: str | None, now: float) -> float | None:
    """Parses a Retry-After header, a number of seconds or a date, into seconds.

    >>> seconds_of("2", 0), seconds_of("Thu, 01 Jan 1970 00:01:00 GMT", 50), seconds_of("soon", 0)
    (2.0, 10.0, None)
    """
    if not retry_after:
        return None
    text = retry_after.strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - now)
    except (ValueError, OverflowError):
        return None
