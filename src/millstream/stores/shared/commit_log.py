"""Reads and creates commits.

A process that starts looks for the newest commit, beginning at a hint, and reads the newest
manifest and the commits after it. A process that follows asks for the next commit by its name. The
hint is an object that is overwritten now and then: it may be old or missing, and correctness never
depends on it.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from millstream.errors import PlaceDamaged, PlaceError, StoreError
from millstream.places.place import Place, created, persistent, read, sealed
from millstream.stores.shared.commit_record import (
    COMMITS,
    LATEST,
    CommitRecord,
    StoreState,
    batch_in,
    commit_name,
    decode_commit,
    encode_commit,
    state_of,
)

T = TypeVar("T")
MANIFEST_EVERY = 64
"""The number of commits from one manifest to the next."""
PATIENCE = 60.0
"""Seconds for which requests are retried while the place does not answer."""
AT_ONCE = 16
"""The number of commits that are read in parallel."""


class CommitLog:
    """The commits of a store."""

    def __init__(self, place: Place, patience: float = PATIENCE) -> None:
        self._place = place
        self._patience = patience

    def create(self, commit: CommitRecord) -> bool:
        """Commit a batch; False if another driver has committed a batch with this number."""
        name = commit_name(commit.batch)
        data = sealed(name, encode_commit(commit))
        won = self._persistently(lambda: created(self._place, name, data))
        if won and commit.manifest is not None:
            try:
                self._place.put(LATEST, sealed(LATEST, str(commit.batch).encode()))
            except PlaceError:
                pass  # only a hint: the commit is valid, and the next manifest writes another
        return won

    def read(self, batch: int) -> CommitRecord | None:
        """The commit of a batch; None if there is none, or it was deleted."""
        name = commit_name(batch)
        data = self._persistently(lambda: read(self._place, name))
        return None if data is None else decode_commit(data)

    def newest(self) -> int | None:
        """The number of the newest commit; None if there is none."""
        hinted = self._hinted()
        after = "" if hinted is None else commit_name(hinted - 1)
        names = self._persistently(
            lambda: [listed.name for listed in self._place.list(COMMITS, after)]
        )
        if not names and hinted is not None:  # the hint is wrong
            names = self._persistently(
                lambda: [listed.name for listed in self._place.list(COMMITS)]
            )
        return batch_in(names[-1]) if names else None

    def load(self) -> StoreState | None:
        """The state of the store according to its commits; None if there is no store."""
        newest = self.newest()
        if newest is None:
            return None
        last = self._needed(newest)
        first = last if last.manifest_at == newest else self._needed(last.manifest_at)
        state = state_of(first)
        with ThreadPoolExecutor(AT_ONCE) as pool:
            for commit in pool.map(self._needed, range(first.batch + 1, newest + 1)):
                state.take(commit)
        return state

    def _needed(self, batch: int) -> CommitRecord:
        commit = self.read(batch)
        if commit is None:
            raise StoreError(
                f"{self._place.address}/{commit_name(batch)}: is missing, and later commits are "
                "there; restore it from a copy or an earlier version of the bucket"
            )
        return commit

    def _hinted(self) -> int | None:
        try:
            data = self._persistently(lambda: read(self._place, LATEST))
            return None if data is None else int(data)
        except (PlaceDamaged, ValueError):
            return None

    def _persistently(self, attempt: Callable[[], T]) -> T:
        return persistent(attempt, self._patience)
