"""Sweeping a place deletes what no commit names, and nothing that anybody may need."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
from stores.shared.shared_model import ModelDriver

from millstream.errors import StoreError
from millstream.places.memory_place import MemoryPlace
from millstream.places.place import sealed
from millstream.stores.shared.commit_record import COMMITS
from millstream.stores.shared.leader_beat import LEADER, LeaderBeat
from millstream.stores.shared.place_sweep import HOUR, sweep
from millstream.stores.shared.store_mirror import StoreMirror


class Clock:
    """The clock of a place."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def driver(clock: Clock, tmp_path: Path) -> Iterator[ModelDriver]:
    place = MemoryPlace(clock)
    with closing(ModelDriver(place, tmp_path / "hosts", 2, 2, patience=0.0)) as made:
        yield made


def batch(driver: ModelDriver, value: bytes, **more: bool) -> None:
    changes = {0: {"f": {b"a": value}}, 1: {"f": {b"b": value}}}
    assert driver.commit(driver.attempted(0, changes), **more)


def names(driver: ModelDriver, prefix: str = "") -> list[str]:
    return [listed.name for listed in driver.place.list(prefix)]


def test_what_no_commit_names_goes(driver: ModelDriver, clock: Clock) -> None:
    """Objects of tries that lost go once they are old; those of commits stay."""
    batch(driver, b"1")
    named = {*names(driver)}
    (lost,) = driver.attempted(1, {0: {"f": {b"a": b"lost"}}})
    clock.now += HOUR - 1
    assert sweep(driver.place).names == []
    clock.now += 2
    assert sweep(driver.place, dry_run=True).names == [lost.name]
    assert lost.name in names(driver)
    swept = sweep(driver.place)
    assert swept.names == [lost.name]
    assert swept.by_kind() == {"changes": 1}
    assert {*names(driver)} == named


def test_the_last_commit_names_old_objects(
    driver: ModelDriver, clock: Clock, tmp_path: Path
) -> None:
    """Objects that the manifest needs stay, however old they are: changes, packs, bases."""
    for value in (b"1", b"2", b"3", b"4"):
        batch(driver, value)
        clock.now += 2 * HOUR
    assert driver.commit([], [driver.base(0, 0)], whole=True)
    clock.now += 2 * HOUR
    assert driver.commit([], [], driver.pack(2))
    for value in (b"5", b"6"):
        clock.now += 2 * HOUR
        batch(driver, value)
    clock.now += 2 * HOUR
    assert sweep(driver.place).by_kind().keys() <= {"commits", "changes"}
    with closing(StoreMirror(driver.place, tmp_path / "mirror", 0.0)) as mirror:
        assert mirror.batch == driver.state.batch
    for host in range(2):
        assert driver.read(host, 0) == {b"a": b"6"}
        assert driver.read(host, 1) == {b"b": b"6"}


def test_what_was_replaced_a_moment_ago_stays(driver: ModelDriver, clock: Clock) -> None:
    """A restore that began from an old manifest finds its objects until their age is over."""
    driver.place.delete = lambda names: None  # type: ignore[method-assign]  # the driver leaves all
    batch(driver, b"1")
    batch(driver, b"2")
    old = {*names(driver, "changes")}
    clock.now += 5 * HOUR
    assert driver.commit([], [driver.base(0, 0), driver.base(0, 1)], whole=True)
    del driver.place.delete  # type: ignore[attr-defined]
    clock.now += 10
    sweep(driver.place)
    assert {*names(driver, "changes")} == old
    clock.now += 2 * HOUR
    assert sweep(driver.place).by_kind() == {"changes": len(old), "commits": 3}
    assert names(driver, COMMITS) == ["commits/000000000003"]


def test_an_age_that_a_running_driver_may_need(driver: ModelDriver) -> None:
    """A short age is refused while a driver may run."""
    batch(driver, b"1")
    for ended in (False, True):
        beat = msgspec.msgpack.encode(LeaderBeat("host1", "run", 1, ended))
        driver.place.put(LEADER, sealed(LEADER, beat))
        if ended:
            assert sweep(driver.place, 0.0).names == []
        else:
            with pytest.raises(StoreError, match=r"a driver on host1 runs.*--older-than"):
                sweep(driver.place, 30.0)


def test_no_store_is_there() -> None:
    """An empty place, or another's, is left alone."""
    place = MemoryPlace()
    place.put("changes/x", b"x")
    with pytest.raises(StoreError, match="no store is there"):
        sweep(place, 0.0)
    assert [listed.name for listed in place.list("")] == ["changes/x"]
