"""When a follower asks, what it does while the place is away, and how it reports its freshness."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from server.served import until
from stores.shared.shared_model import ModelDriver

from millstream.durable import read_record
from millstream.errors import PlaceError, StoreLocked
from millstream.places.memory_place import MemoryPlace
from millstream.stores.progress import decoded
from millstream.stores.shared.commit_record import COMMITS, commit_name
from millstream.stores.shared.follow_pace import FollowPace
from millstream.stores.shared.follower import StoreFollower
from millstream.stores.shared.leader_beat import LeaderBeat
from millstream.stores.shared.mirror_folder import followed_here, held_folder, mirror_folder
from millstream.stores.shared.mirror_record import read_mirror
from millstream.stores.shared.store_mirror import StoreMirror


def beat(number: int, *, ended: bool = False) -> LeaderBeat:
    return LeaderBeat("host", "run", number, ended)


def test_the_pace_follows_the_commits() -> None:
    """Short pauses behind quick batches, up to a tenth of a second behind slow ones and while a
    leader rests; a second when nobody leads."""
    pace = FollowPace(0.0)
    pace.beat(beat(1), 0.0)
    for number in range(50):
        pace.committed(number * 0.1)
    assert pace.pause(5.0) == pytest.approx(0.02)
    assert pace.pause(5.4) == pytest.approx(0.05)
    pace.beat(beat(2), 10.0)
    assert pace.leads(10.0)
    assert pace.pause(10.0) == 0.1
    pace.beat(beat(2), 25.0)
    assert not pace.leads(25.0)
    assert pace.pause(25.0) == 1.0
    pace.committed(26.0)
    assert pace.leads(26.0)
    pace.beat(beat(3, ended=True), 27.0)
    assert not pace.leads(27.0)


def test_the_leader_is_asked_about_in_silence_only() -> None:
    """While commits come nobody needs to ask who leads, but once at the beginning."""
    pace = FollowPace(0.0)
    assert pace.asks_leader(0.0)
    pace.beat(beat(1), 0.0)
    for now in range(1, 20):
        pace.committed(float(now))
        assert not pace.asks_leader(now + 1.0)
    assert pace.asks_leader(25.0)
    pace.beat(beat(9), 25.0)
    assert not pace.asks_leader(26.0)


def test_missed_commits_are_looked_for_in_silence() -> None:
    """After two seconds without a commit, then every five; and at once after the place was away."""
    pace = FollowPace(0.0)
    pace.beat(beat(1), 0.0)
    looks = []
    for tenth in range(200):
        now = tenth / 10
        if tenth % 20 == 0:
            pace.beat(beat(tenth), now)
        if pace.looks_back(now):
            looks.append(now)
        pace.answered(now)
    assert len(looks) == 3
    pace.committed(20.0)
    assert not pace.looks_back(20.1)
    assert pace.looks_back(30.0)


class AwayPlace(MemoryPlace):
    """Can be away."""

    away = False

    def get(self, name: str, start: int = 0, end: int | None = None) -> bytes | None:
        if self.away:
            raise PlaceError(f"memory:/{name}: is away")
        return super().get(name, start, end)


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[ModelDriver]:
    with closing(ModelDriver(AwayPlace(), tmp_path / "hosts", 2, 1, patience=0.0)) as made:
        yield made


def batch(driver: ModelDriver, value: bytes) -> None:
    assert driver.commit(driver.attempted(0, {0: {"f": {b"a": value}}}))


def test_a_follower_keeps_up(driver: ModelDriver, tmp_path: Path) -> None:
    """It reads committed batches, and reports when the place last answered and why it does not."""
    with closing(StoreMirror(driver.place, tmp_path / "mirror", 0.0)) as mirror:
        follower = StoreFollower(driver.place, mirror)
        stop = threading.Event()
        thread = threading.Thread(target=follower.run, args=(stop,))
        thread.start()
        try:
            for number in range(20):
                batch(driver, b"%d" % number)
            until(lambda: mirror.batch == driver.state.batch)
            driver.place.away = True  # type: ignore[attr-defined]
            until(lambda: (record := read_mirror(mirror.path)) and "is away" in record.error)
            record = read_mirror(mirror.path)
            assert record is not None
            assert record.asked / 1e6 < time.time()
            driver.place.away = False  # type: ignore[attr-defined]
            batch(driver, b"back")
            until(lambda: mirror.batch == driver.state.batch)
            until(lambda: (record := read_mirror(mirror.path)) and not record.error)
        finally:
            stop.set()
            thread.join()
        progress = decoded(read_record(mirror.path / "progress"))
        assert progress.batch == driver.state.batch


def test_a_follower_that_fell_behind(driver: ModelDriver, tmp_path: Path) -> None:
    """If its next commit was swept while it was away, it goes on from the newest manifest."""
    now = [0.0]
    with closing(StoreMirror(driver.place, tmp_path / "mirror", 0.0)) as mirror:
        follower = StoreFollower(driver.place, mirror, clock=lambda: now[0])
        follower.step()
        for number in range(5):
            batch(driver, b"%d" % number)
        assert driver.commit([], whole=True)
        last = commit_name(driver.state.batch)
        driver.place.delete([n.name for n in driver.place.list(COMMITS) if n.name < last])
        follower.step()
        assert mirror.batch < driver.state.batch
        now[0] += 10.0
        follower.step()
        assert mirror.batch == driver.state.batch


def test_mirror_folders(tmp_path: Path) -> None:
    """Each process gets the first free folder. Readers find the folder that is being followed."""
    cache = str(tmp_path)
    with mirror_folder("s3://a/b", cache) as first, mirror_folder("s3://a/b", cache) as second:
        assert first != second
        assert followed_here("s3://a/b", cache) is None
        with pytest.raises(StoreLocked), held_folder(first):
            pass
    with mirror_folder("s3://a/b", cache) as again, mirror_folder("s3://a/c", cache) as other:
        assert again == first
        assert other.parent != first.parent
        with mirror_folder("s3://a/b", cache, [0, 1]) as some:
            assert some not in (first, second)
