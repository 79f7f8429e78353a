"""A mirror of a shared store: what its readers see while it follows, falls behind and starts."""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from generated_cases import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from stores.shared.shared_model import ModelDriver, Rows

from millstream.codec import encode_value, shard_of
from millstream.errors import PlaceDamaged, PlaceError, ShardElsewhere, StaleRead, StoreError
from millstream.places.memory_place import MemoryPlace
from millstream.stores.contract import Changes
from millstream.stores.home import Home
from millstream.stores.layout import pack_slate, slates_of
from millstream.stores.reader import SlateReader
from millstream.stores.shared.commit_record import COMMITS, commit_name
from millstream.stores.shared.store_mirror import StoreMirror

SHARDS = 4
KEYS = [f"key{number}" for number in range(40)]


class CountingPlace(MemoryPlace):
    """Counts what is fetched, and can be away."""

    def __init__(self) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.away = False

    def get(self, name: str, start: int = 0, end: int | None = None) -> bytes | None:
        if self.away:
            raise PlaceError("memory: is away")
        self.fetched.append(name)
        return super().get(name, start, end)


@pytest.fixture
def place() -> CountingPlace:
    return CountingPlace()


@pytest.fixture
def driver(place: CountingPlace, tmp_path: Path) -> Iterator[ModelDriver]:
    with closing(ModelDriver(place, tmp_path / "hosts", SHARDS, 2, patience=0.0)) as made:
        yield made


def slates(value: int, keys: list[str] = KEYS) -> dict[int, dict[str, Changes]]:
    """The changes of a batch that gives every slate of update `f` this value."""
    changes: dict[int, dict[str, Changes]] = {}
    for key in keys:
        rows = changes.setdefault(shard_of("f", key, SHARDS), {"f": {}})["f"]
        rows[slates_of("f") + key.encode()] = pack_slate(1, encode_value({"n": value}), {})  # type: ignore[index]
    return changes


def batch(driver: ModelDriver, value: int, keys: list[str] = KEYS) -> None:
    assert driver.commit(driver.attempted(value % 2, slates(value, keys)))


def shown(mirror: StoreMirror) -> dict[str, int]:
    with SlateReader(mirror.path) as reader:
        return {slate.key: slate.value["n"] for slate in reader.scan("f")}


def sweep_commits(place: MemoryPlace, before: int) -> None:
    """As a driver does long after nobody who starts needs them."""
    place.delete(
        [listed.name for listed in place.list(COMMITS) if listed.name < commit_name(before)]
    )


def test_a_mirror_shows_each_batch(
    driver: ModelDriver, place: CountingPlace, tmp_path: Path
) -> None:
    """Every commit is taken in once it is there, by the reader of local stores."""
    batch(driver, 1)
    with closing(StoreMirror(place, tmp_path / "mirror", 0.0)) as mirror:
        assert shown(mirror) == dict.fromkeys(KEYS, 1)
        assert not mirror.follow()
        for value in range(2, 6):
            batch(driver, value, KEYS[value:])
            assert mirror.follow()
            assert mirror.batch == driver.state.batch
            assert shown(mirror)[KEYS[-1]] == value
        assert shown(mirror)[KEYS[2]] == 2
        assert not mirror.follow()


def test_each_object_is_fetched_once(
    driver: ModelDriver, place: CountingPlace, tmp_path: Path
) -> None:
    """Following a commit takes one request for it and one for each of its objects, however many
    shards these have rows of; nothing is asked when the shards of the last follower are current."""
    batch(driver, 1)
    with closing(StoreMirror(place, tmp_path / "mirror", 0.0)) as mirror:
        for value in (2, 3):
            batch(driver, value)
            place.fetched.clear()
            assert mirror.follow()
            assert len(place.fetched) == 2, place.fetched
    place.fetched.clear()
    StoreMirror(place, tmp_path / "mirror", 0.0).close()
    assert not [name for name in place.fetched if name.startswith(("changes", "bases", "packs"))]


def test_some_shards_only(driver: ModelDriver, place: CountingPlace, tmp_path: Path) -> None:
    """A mirror of some shards answers for their slates, and says which are here for the others."""
    batch(driver, 1)
    here = [1, 2]
    with closing(StoreMirror(place, tmp_path / "mirror", 0.0, here)) as mirror:
        batch(driver, 2)
        mirror.follow()
        with SlateReader(mirror.path) as reader:
            for key in KEYS:
                if shard_of("f", key, SHARDS) in here:
                    slate = reader.get("f", key)
                    assert slate is not None
                    assert slate.value == {"n": 2}
                else:
                    with pytest.raises(ShardElsewhere, match="only the shards 1-2;"):
                        reader.get("f", key)
            with pytest.raises(ShardElsewhere):
                [*reader.scan("f")]
        assert sorted(path.name for path in Home.open(mirror.path).shards.iterdir()) == [
            "shard-0001",
            "shard-0002",
        ]
    with pytest.raises(StoreError, match="has shards 0 to 3; asked for 3-4"):
        StoreMirror(place, tmp_path / "other", 0.0, [3, 4])


def test_a_mirror_that_fell_behind(
    driver: ModelDriver, place: CountingPlace, tmp_path: Path
) -> None:
    """If its next commit is gone, it goes to the last one at once. Whoever has the old shards open
    never takes them for the new ones, and a scan that is under way goes on."""
    batch(driver, 1)
    with closing(StoreMirror(place, tmp_path / "mirror", 0.0)) as mirror:
        old = SlateReader(mirror.path)
        scan = old.scan("f")
        assert next(scan).value == {"n": 1}
        for value in range(2, 9):
            batch(driver, value)
        assert driver.commit([], whole=True)
        sweep_commits(place, driver.state.batch)
        assert not mirror.follow()
        assert shown(mirror) == dict.fromkeys(KEYS, 1)
        assert mirror.catch_up()
        assert mirror.batch == driver.state.batch
        assert {slate.value["n"] for slate in scan} == {1}
        with pytest.raises(StaleRead, match="loaded anew"):
            old.get("f", KEYS[0])
        old.close()
        assert shown(mirror) == dict.fromkeys(KEYS, 8)
        assert not mirror.catch_up()
        batch(driver, 9)
        assert mirror.follow()
        assert shown(mirror) == dict.fromkeys(KEYS, 9)


def test_changes_that_are_gone(driver: ModelDriver, place: CountingPlace, tmp_path: Path) -> None:
    """A late mirror whose next commit names objects that bases have replaced continues from the
    bases. A lost object is an error, and the mirror stays unchanged."""
    batch(driver, 1)
    with closing(StoreMirror(place, tmp_path / "mirror", 0.0)) as mirror:
        batch(driver, 2)
        batch(driver, 3)
        assert driver.commit([], [driver.base(0, shard) for shard in range(SHARDS)])
        assert mirror.follow()
        assert shown(mirror) == dict.fromkeys(KEYS, 3)
        batch(driver, 4)
        place.delete([ref.name for ref in driver.state.manifest.segments])
        with pytest.raises(PlaceDamaged, match="is missing"):
            mirror.follow()
        assert shown(mirror) == dict.fromkeys(KEYS, 3)


def test_a_reload_that_fails_changes_nothing(
    driver: ModelDriver, place: CountingPlace, tmp_path: Path
) -> None:
    """If the place goes away in the middle, the mirror shows what it showed, and tries again."""
    batch(driver, 1)
    with closing(StoreMirror(place, tmp_path / "mirror", 0.0)) as mirror:
        for value in (2, 3):
            batch(driver, value)
        assert driver.commit([], whole=True)
        sweep_commits(place, driver.state.batch)
        assert not mirror.follow()
        kept = place.get

        def away(name: str, start: int = 0, end: int | None = None) -> bytes | None:
            if name.startswith("changes"):
                raise PlaceError("memory: is away")
            return kept(name, start, end)

        place.get = away  # type: ignore[method-assign]
        with pytest.raises(PlaceError):
            mirror.catch_up()
        assert shown(mirror) == dict.fromkeys(KEYS, 1)
        place.get = kept  # type: ignore[method-assign]
        assert mirror.catch_up()
        assert shown(mirror) == dict.fromkeys(KEYS, 3)
        assert len([*(tmp_path / "mirror").glob("shards-*")]) == 2


def test_readers_never_see_half_a_batch(
    driver: ModelDriver, place: CountingPlace, tmp_path: Path
) -> None:
    """Threads that read while a mirror follows, and is reloaded, see all slates of one batch, and
    never an older batch than before."""
    batch(driver, 0)
    with closing(StoreMirror(place, tmp_path / "mirror", 0.0)) as mirror:
        stop = threading.Event()

        def read() -> int:
            looks, last = 0, -1
            while not stop.is_set() or not looks:
                try:
                    with SlateReader(mirror.path) as reader:
                        found = {slate.value["n"] for slate in reader.scan("f")}
                except StaleRead:  # it was loaded anew since it was opened
                    continue
                assert len(found) == 1, found
                assert min(found) >= last
                last = min(found)
                looks += 1
            return looks

        with ThreadPoolExecutor(3) as pool:
            readers = [pool.submit(read) for _ in range(3)]
            try:
                for value in range(1, 60):  # thrice loaded anew
                    batch(driver, value)
                    if value % 20 < 10:
                        assert mirror.follow()
                    elif value % 20 == 19:
                        assert driver.commit([], whole=True)
                        sweep_commits(place, driver.state.batch)
                        assert mirror.catch_up()
            finally:
                stop.set()
            assert all(reader.result() for reader in readers)


def test_a_mirror_of_another_store(place: CountingPlace, tmp_path: Path) -> None:
    """Files of another store in the folder are not used, nor those of another boot."""
    with closing(ModelDriver(place, tmp_path / "hosts", SHARDS, 2, patience=0.0)) as driver:
        batch(driver, 1)
        StoreMirror(place, tmp_path / "mirror", 0.0).close()
    other = CountingPlace()
    with closing(ModelDriver(other, tmp_path / "others", SHARDS, 2, patience=0.0)) as driver:
        driver.facts = driver.facts.replace(b'"store"', b'"other"')
        driver.start()
        batch(driver, 2, KEYS[:5])
        with closing(StoreMirror(other, tmp_path / "mirror", 0.0)) as mirror:
            assert shown(mirror) == dict.fromkeys(KEYS[:5], 2)


keys = st.sampled_from([b"a", b"b", b"c", b"k" * 600])
rows = st.dictionaries(keys, st.none() | st.binary(min_size=1, max_size=3), max_size=3)
tasks = st.dictionaries(
    st.integers(0, 1), st.fixed_dictionaries({"f": rows, "g": rows}), max_size=2
)
steps = st.one_of(
    st.tuples(st.just("batch"), tasks),
    st.tuples(st.just("layers"), tasks),
    st.tuples(st.just("lost"), tasks),
    st.tuples(st.just("base"), st.integers(0, 1)),
    st.tuples(st.just("pack"), st.integers(2, 3)),
    st.tuples(st.just("driver"), st.none()),
    st.tuples(st.just("follow"), st.none()),
    st.tuples(st.just("again"), st.none()),
    st.tuples(st.just("killed"), st.none()),
    st.tuples(st.just("reload"), st.none()),
)


@settings(max_examples=examples(40), deadline=None)
@given(st.lists(steps, max_size=25))
def test_a_mirror_is_what_was_committed(taken: list[tuple[str, object]]) -> None:
    """For any commits, and wherever a follower ends and restarts, its shards have exactly the
    committed rows once it has followed."""
    with tempfile.TemporaryDirectory() as folder:
        driver = ModelDriver(MemoryPlace(), Path(folder), 2, 2, patience=0.0)
        mirror = StoreMirror(driver.place, Path(folder) / "mirror", 0.0)
        model: dict[int, Rows] = {0: {}, 1: {}}
        for kind, argument in taken:
            changes = _own_keys(argument) if isinstance(argument, dict) else {}
            if kind == "batch":
                assert driver.commit(driver.attempted(0, changes))
                _applied(model, changes)
            elif kind == "layers":
                refs = [
                    ref
                    for name in ("f", "g")
                    for ref in driver.attempted(
                        1, {shard: {name: named[name]} for shard, named in changes.items()}
                    )
                ]
                assert driver.commit(refs)
                _applied(model, changes)
            elif kind == "lost":
                driver.attempted(1, changes)
            elif kind == "base":
                assert isinstance(argument, int)
                assert driver.commit([], [driver.base(0, argument)])
            elif kind == "pack":
                assert isinstance(argument, int)
                assert driver.commit([], [], driver.pack(argument))
            elif kind == "driver":
                driver.start()
            elif kind == "follow":
                _follow_all(mirror)
            elif kind == "killed":  # in the middle of the next batch
                commit = driver.log.read(mirror.batch + 1)
                if commit is not None and all(driver.place.get(c.name) for c in commit.changes):
                    commit.changes = commit.changes[:1]
                    mirror._apply(commit)
                mirror.close()
                mirror = StoreMirror(driver.place, Path(folder) / "mirror", 0.0)
            elif kind == "again":
                mirror.close()
                mirror = StoreMirror(driver.place, Path(folder) / "mirror", 0.0)
            else:
                mirror.reload()
        _follow_all(mirror)
        assert mirror.batch == driver.state.batch
        home = Home.open(mirror.path)
        store = home.store()
        for shard in range(2):
            with store.shard(shard).at(home.committed()) as view:
                assert dict(view.scan(b"")) == model[shard]
        store.close()
        mirror.close()
        driver.close()


def _follow_all(mirror: StoreMirror) -> None:
    while mirror.follow() or mirror.catch_up():
        pass


def _own_keys(changes: dict[int, dict[str, Changes]]) -> dict[int, dict[str, Changes]]:
    """No two functions share a key."""
    return {
        shard: {
            name: {name.encode() + key: value for key, value in changed.items()}
            for name, changed in named.items()
        }
        for shard, named in changes.items()
    }


def _applied(model: dict[int, Rows], changes: dict[int, dict[str, Changes]]) -> None:
    for shard, named in changes.items():
        for changed in named.values():
            for key, value in changed.items():
                if value is None:
                    model[shard].pop(key, None)
                else:
                    model[shard][key] = value


def test_a_damaged_shard_is_restored(
    driver: ModelDriver, place: CountingPlace, tmp_path: Path
) -> None:
    """Shards that a killed follower did not write to their end are made anew."""
    batch(driver, 1)
    StoreMirror(place, tmp_path / "mirror", 0.0).close()
    shards = next((tmp_path / "mirror").glob("shards-*"))
    with open(shards / "shard-0002" / "data.mdb", "r+b") as file:
        file.truncate(100)
    os.unlink(shards / "shard-0001" / "data.mdb")
    with closing(StoreMirror(place, tmp_path / "mirror", 0.0)) as mirror:
        assert shown(mirror) == dict.fromkeys(KEYS, 1)
