"""The polling intervals of a follower. Pure.

A reader may be behind by one batch and 200 ms, and a commit takes two requests: one for itself, one
for its changes. So the follower polls every tenth of the usual time between two commits, but at
most 50 times a second; and while a driver leads, at least ten times a second, however seldom it
commits. If nobody leads, it polls once a second.
"""

from __future__ import annotations

from millstream.stores.shared.leader_beat import LeaderBeat

SHORTEST, LONGEST, UNLED = 0.02, 0.1, 1.0
"""Seconds between two polls for a commit: the least, the most, and if nobody leads."""
WEIGHT = 0.2
"""The weight of the newest time between two commits in the average."""
LEADER_EVERY = 5.0
"""Seconds between two reads of the leader's heartbeat, unless a commit shows that there is one."""
SILENT_SECONDS = 12.0
"""A leader that sends no heartbeat and no commit for this long is considered gone."""
QUIET_SECONDS, QUIET_EVERY, UNLED_EVERY = 2.0, 5.0, 30.0
"""After QUIET_SECONDS without a commit, or without an answer of the place, the follower checks for
missed commits; then every QUIET_EVERY seconds, or UNLED_EVERY if nobody leads."""


class FollowPace:
    """The follower's observations of the commits and of the leader."""

    def __init__(self, now: float) -> None:
        self._last = now
        self._gap = 1.0
        self._beat: LeaderBeat | None = None
        self._beat_at: float | None = None
        self._heard = now
        self._looked_back = now
        self._answered = now

    def committed(self, now: float) -> None:
        """Note that a commit was found."""
        self._gap += WEIGHT * (now - self._last - self._gap)
        self._last = self._heard = now

    def answered(self, now: float) -> None:
        """Note that the place answered."""
        self._answered = now

    def asks_leader(self, now: float) -> bool:
        """True if the leader's heartbeat should be read now."""
        since = self._last if self._beat_at is None else max(self._last, self._beat_at)
        return self._beat_at is None or now - since >= LEADER_EVERY

    def beat(self, beat: LeaderBeat | None, now: float) -> None:
        """Note the leader's heartbeat."""
        if beat != self._beat:
            self._heard = now
        self._beat, self._beat_at = beat, now

    def leads(self, now: float) -> bool:
        """True if a driver leads, as far as is known."""
        if now - self._last < LEADER_EVERY and self._beat_at is not None:
            ended = self._beat is not None and self._beat.ended and self._beat_at > self._last
            return not ended
        if self._beat is None or self._beat.ended:
            return False
        return now - self._heard < SILENT_SECONDS

    def looks_back(self, now: float) -> bool:
        """True if the follower should check for missed commits, after a poll that found none."""
        every = QUIET_EVERY if self.leads(now) else UNLED_EVERY
        quiet = now - self._last > QUIET_SECONDS and now - self._looked_back > every
        if quiet or now - self._answered > QUIET_SECONDS:
            self._looked_back = now
            return True
        return False

    def pause(self, now: float) -> float:
        """Seconds before the next poll, after one that found nothing."""
        if not self.leads(now):
            return UNLED
        gap = max(self._gap, now - self._last)
        return min(max(gap / 10, SHORTEST), LONGEST)
