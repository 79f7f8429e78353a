"""A driver on a shared store: one that was overtaken cannot commit, however long it slept."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from millstream.errors import PlaceError, StoreLocked
from millstream.places.elapsed import ClockReading
from millstream.places.memory_place import MemoryPlace
from millstream.stores.progress import Progress, decoded
from millstream.stores.shared import shared_home
from millstream.stores.shared.commit_record import COMMITS, commit_name
from millstream.stores.shared.shared_home import SharedHome
from millstream.stores.shared.staged_objects import staged_name


def driver(place: MemoryPlace, folder: Path) -> tuple[SharedHome, Progress]:
    """A driver that has taken the store over."""
    home = SharedHome.take(place, folder, "app", 4, {})
    progress = decoded(home.read_progress())
    home.take_over(progress)
    return home, progress


def commit(home: SharedHome, progress: Progress) -> None:
    progress.batch += 1
    home.write_progress(progress)


def test_the_first_to_commit_goes_on(tmp_path: Path) -> None:
    """The other driver is told which one it was, and nothing of its batch counts."""
    place = MemoryPlace()
    old, before = driver(place, tmp_path / "old")
    commit(old, before)
    new, after = driver(place, tmp_path / "new")
    with pytest.raises(StoreLocked, match=r"another driver on .*, epoch 2"):
        commit(old, before)
    commit(new, after)
    assert after.batch == 3


def test_one_that_slept_until_its_commits_were_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name of its next commit is free again, and it finds out all the same."""
    place, now = MemoryPlace(), 1_000.0
    monkeypatch.setattr(shared_home, "moment", lambda: ClockReading(now, now))
    old, before = driver(place, tmp_path / "old")
    new, after = driver(place, tmp_path / "new")
    for _ in range(5):
        commit(new, after)
    place.delete(
        [listed.name for listed in place.list(COMMITS) if listed.name < commit_name(after.batch)]
    )
    now += 10_000.0
    with pytest.raises(StoreLocked):
        commit(old, before)
    assert place.get(commit_name(before.batch)) is None
    commit(new, after)


class AwayPlace(MemoryPlace):
    """A place whose deletes fail some times."""

    failures = 0

    def delete(self, names: Iterable[str]) -> None:
        if self.failures > 0:
            self.failures -= 1
            raise PlaceError("memory: it is away (a test made it so); try again")
        super().delete(names)


def test_a_place_that_is_away_when_staged_output_is_dropped(tmp_path: Path) -> None:
    """The sinks have the batch by then: the run waits for the place, as for any other request."""
    place = AwayPlace()
    home, _ = driver(place, tmp_path / "home")
    name = "000000000001-driver.rows"
    home.stage(name, bytes(shared_home.INLINE_BYTES + 1))
    assert [listed.name for listed in place.list("staged/")] == [staged_name(name)]
    place.failures = 2
    home.drop_staged([name])
    assert [*place.list("staged/")] == []
