"""Whatever happens to hosts, tasks and drivers, a shard has the committed rows, on every host."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import fields
from pathlib import Path

import pytest
from generated_cases import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from places.faulty_place import FaultRates, FaultyPlace
from stores.shared.shared_model import ModelDriver, Rows

from millstream.errors import StaleCommit
from millstream.places.directory_place import DirectoryPlace
from millstream.places.memory_place import MemoryPlace
from millstream.places.place import Place
from millstream.stores.contract import Changes

Steps = list[tuple[str, int, object]]
SHARDS, HOSTS = 2, 3
keys = st.sampled_from([b"a", b"b", b"c", b"d", b"k" * 600])
rows = st.dictionaries(keys, st.none() | st.binary(min_size=1, max_size=3), max_size=3)
functions = st.fixed_dictionaries({"f": rows, "g": rows})
tasks = st.dictionaries(st.integers(0, SHARDS - 1), functions, max_size=SHARDS)
hosts = st.integers(0, HOSTS - 1)
steps = st.one_of(
    st.tuples(st.just("batch"), hosts, tasks),
    st.tuples(st.just("layers"), hosts, tasks),
    st.tuples(st.just("lost"), hosts, tasks),
    st.tuples(st.just("zombie"), hosts, tasks),
    st.tuples(st.just("base"), hosts, st.integers(0, SHARDS - 1)),
    st.tuples(st.just("pack"), hosts, st.integers(2, 4)),
    st.tuples(st.just("driver"), hosts, st.none()),
    st.tuples(st.just("look"), hosts, st.integers(0, SHARDS - 1)),
)


def applied(model: dict[int, Rows], changes: dict[int, dict[str, Changes]]) -> None:
    """Applies a committed batch. Keys belong to functions."""
    for shard, named in changes.items():
        for changed in named.values():
            for key, value in changed.items():
                if value is None:
                    model[shard].pop(key, None)
                else:
                    model[shard][key] = value


def own_keys(changes: dict[int, dict[str, Changes]]) -> dict[int, dict[str, Changes]]:
    """No two functions share a key."""
    return {
        shard: {
            name: {name.encode() + key: value for key, value in changed.items()}
            for name, changed in named.items()
        }
        for shard, named in changes.items()
    }


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(steps, max_size=25))
def test_every_host_has_what_was_committed(taken: Steps) -> None:
    """Tries that lose, tasks that come late, other drivers, bases and packs change no row."""
    followed(MemoryPlace(), taken, patience=0.0)


@pytest.fixture
def quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retries that wait for next to nothing."""
    monkeypatch.setattr("millstream.places.place.FIRST_PAUSE", 1e-5)
    monkeypatch.setattr("millstream.places.place.LONGEST_PAUSE", 1e-4)


@pytest.mark.parametrize("fault", ["fails", "loses_answer", "comes_late", "slow", "all"])
@settings(
    max_examples=examples(40),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.lists(steps, max_size=25), st.integers())
def test_so_it_is_over_a_place_that_misbehaves(
    quick_retries: None, fault: str, taken: Steps, seed: int
) -> None:
    """The model holds over a place with each kind of fault, and with all of them."""
    names = [field.name for field in fields(FaultRates)] if fault == "all" else [fault]
    rates = FaultRates(**dict.fromkeys(names, 0.15))
    place = FaultyPlace(MemoryPlace(), seed, rates, pause=lambda: time.sleep(1e-5))
    followed(place, taken, patience=60.0, settle=place.settle)


@settings(max_examples=examples(30), deadline=None)
@given(st.lists(steps, max_size=25))
def test_so_it_is_in_a_directory(taken: Steps) -> None:
    """The same over files."""
    with tempfile.TemporaryDirectory() as folder:
        followed(DirectoryPlace(folder), taken, patience=0.0)


def followed(
    place: Place, taken: Steps, patience: float, settle: Callable[[], object] = lambda: None
) -> None:
    """Take the steps, and compare every host with the model."""
    with (
        tempfile.TemporaryDirectory() as folder,
        closing(ModelDriver(place, Path(folder), SHARDS, HOSTS, patience)) as driver,
    ):
        model: dict[int, Rows] = {shard: {} for shard in range(SHARDS)}
        old = driver.store_on(0), driver.epoch, driver.state.batch
        for kind, host, given_ in taken:
            changes = own_keys(given_) if isinstance(given_, dict) else {}  # type: ignore[arg-type]
            if kind == "batch":
                refs = driver.attempted(host, changes)
                old = driver.store_on(host), driver.epoch, driver.state.batch
                assert driver.commit(refs, whole=host == 0)
                applied(model, changes)
            elif kind == "layers":
                refs = [
                    ref
                    for name in ("f", "g")
                    for ref in driver.attempted(
                        host, {shard: {name: named[name]} for shard, named in changes.items()}
                    )
                ]
                assert driver.commit(refs)
                applied(model, changes)
            elif kind == "lost":
                driver.attempted(host, changes)
            elif kind == "zombie":
                try:
                    driver.attempted(host, changes, old[0])
                except (StaleCommit, AssertionError):
                    pass
            elif kind == "base":
                assert isinstance(given_, int)
                assert driver.commit([], [driver.base(host, given_)])
            elif kind == "pack":
                assert isinstance(given_, int)
                assert driver.commit([], [], driver.pack(given_))
            elif kind == "driver":
                driver.start()
            else:
                assert isinstance(given_, int)
                assert driver.read(host, given_) == model[given_]
        settle()
        for host in range(HOSTS):
            for shard in range(SHARDS):
                assert driver.read(host, shard) == model[shard]


def test_a_try_that_came_to_nothing(tmp_path: Path) -> None:
    """A host whose last try of a batch took back an earlier one, and that then missed batches,
    catches up."""
    with closing(ModelDriver(MemoryPlace(), tmp_path, SHARDS, HOSTS, patience=0.0)) as driver:
        assert driver.commit(driver.attempted(0, {0: {"f": {b"a": b"0"}}}))
        driver.attempted(0, {0: {"f": {b"a": b"1"}}})
        assert driver.commit(driver.attempted(0, {0: {"f": {}}}))
        assert driver.commit(driver.attempted(1, {0: {"f": {b"a": b"2"}}}))
        assert driver.read(0, 0) == {b"a": b"2"}
