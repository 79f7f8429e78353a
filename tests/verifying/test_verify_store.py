"""Every kind of durable file: a flipped byte or a missing end is found, and its file is named."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest
from engine.outcome import stored
from generated_cases import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from verifying.filled_store import an_app, clicks, dress, fill

from millstream.engine.sink_rows import read_staged
from millstream.errors import StoreError
from millstream.stores.contract import Fence, after_prefix
from millstream.stores.home import Home
from millstream.stores.layout import timer_row, timers_of
from millstream.stores.progress import decoded
from millstream.stores.vacuum import vacuum
from millstream.verifying.store import verify

pytestmark = pytest.mark.timeout(300)

HARMLESS = ("lock", "server.lock", "lock.mdb")
"""Files that say nothing: they are there to be locked."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with every kind of file, and nothing wrong."""
    path = tmp_path_factory.mktemp("whole") / "store"
    engine = fill(path, an_app(), [clicks(0, 500), clicks(500, 600), []])
    dress(path, engine)
    return path


@pytest.fixture
def store(whole: Path, tmp_path: Path) -> Path:
    """A copy to damage."""
    shutil.copytree(whole, tmp_path / "store")
    return tmp_path / "store"


def meaning(store: Path) -> object:
    """Returns the contents of the shards, as of the committed batch."""
    home = Home.open(store)
    opened = home.store()
    try:
        return stored(opened, home.committed())
    finally:
        opened.close()


def kinds(whole: Path) -> list[str]:
    """Every durable file, by its path in the store."""
    files = (path for path in whole.rglob("*") if path.is_file() and path.name not in HARMLESS)
    return sorted(str(path.relative_to(whole)) for path in files if path.suffix != ".mdb")


def test_a_store_that_is_whole(whole: Path) -> None:
    """Nothing is found, and the summary says what was looked at."""
    findings = verify(whole)
    assert findings.faults == []
    assert findings.looked["slates"] == 194
    assert findings.looked["timers"] == 97
    assert findings.looked["waiting events"] == 20
    assert findings.looked["records"] == 120
    assert findings.summary().endswith("all is well")


def test_every_small_file_damaged(whole: Path) -> None:
    """A byte flipped anywhere, or an end cut off anywhere: found, with the file and a repair.

    Where nothing is found, what the file says is the same.
    """
    seed = random.Random(1)
    for name in kinds(whole):
        good = (whole / name).read_bytes()
        for turn in range(8):
            place = seed.randrange(len(good))
            flipped = bytes([good[place] ^ (1 << seed.randrange(8))])
            cut = turn % 4 == 3
            bad = good[:place] if cut else good[:place] + flipped + good[place + 1 :]
            (whole / name).write_bytes(bad)
            try:
                found = verify(whole, rows=name.endswith("fence")).faults
            finally:
                (whole / name).write_bytes(good)
            named = [finding for finding in found if Path(finding.file) == whole / name]
            if not named:
                assert unchanged(name, good, bad), f"{name}: byte {place} of {len(good)}, {found}"
            else:
                assert all(finding.wrong and finding.repair for finding in named)


def unchanged(name: str, good: bytes, bad: bytes) -> bool:
    """True if all readers of a damaged file read the same as before."""
    if Path(name).name == "fence":
        return not bad  # as before the first batch: it matters only while tasks run
    if name.startswith("sources/") and good.startswith(bad) and bad.endswith(b"\n"):
        return True  # as before the last files were listed; no committed batch has read them
    return bad.rstrip(b"\n") == good.rstrip(b"\n")


@pytest.fixture(scope="module")
def compact(whole: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same store after a vacuum: nearly every page of its shards is in use."""
    path = tmp_path_factory.mktemp("compact") / "store"
    shutil.copytree(whole, path)
    vacuum(Home.open(path), {}, lambda _: None)
    return path


@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 1 << 30))
def test_a_flipped_byte_in_a_shard(compact: Path, seed: int) -> None:
    """Either the byte is found and the shard's file named, or every row reads as before."""
    chance = random.Random(seed)
    path = Home.open(compact).shards / "shard-0000" / "data.mdb"
    before, good = meaning(compact), path.read_bytes()
    place = chance.randrange(len(good))
    bad = bytearray(good)
    bad[place] ^= 1 << chance.randrange(8)
    try:
        path.write_bytes(bad)
        found = verify(compact).faults
        if not found:
            assert meaning(compact) == before, f"byte {place} of {len(good)}"
        else:
            assert {finding.file for finding in found} == {str(path)}
    finally:
        path.write_bytes(good)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_a_shard_that_was_cut_short(store: Path, share: float) -> None:
    """A part of a shard's file, or an empty one, is a finding, though it ends the process."""
    path = store / "shards" / "shard-0001" / "data.mdb"
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.truncate(int(size * share) // 4096 * 4096)
    found = verify(store).faults
    assert [finding.file for finding in found][:1] == [str(path)]
    assert "restore the whole store" in found[0].repair


def test_a_shard_that_is_missing(store: Path) -> None:
    """A folder that was deleted is named."""
    shutil.rmtree(store / "shards" / "shard-0001")
    (found,) = verify(store).faults
    assert found.file == str(store / "shards" / "shard-0001")


def test_a_missing_record(store: Path) -> None:
    """A store without its progress, or without its facts, says so."""
    (store / "progress").unlink()
    assert any(finding.file == str(store / "progress") for finding in verify(store).faults)
    (store / "store.json").unlink()
    assert any(finding.file == str(store / "store.json") for finding in verify(store).faults)


def test_counts_that_do_not_agree(store: Path) -> None:
    """A progress that counts other slates or waiting events than there are is named."""
    home = Home.open(store)
    progress = decoded(home.read_progress())
    progress.counts("count").slates += 1
    progress.counts("seen").waiting -= 1
    home.write_progress(progress)
    wrong = [finding.wrong for finding in verify(store).faults]
    assert any("'count' has 98 slates, and there are 97" in one for one in wrong)
    assert any("9 events wait at 'seen', and there are 10" in one for one in wrong)


def test_an_index_of_timers_that_does_not_agree(store: Path) -> None:
    """A timer that the index has lost, and one that it has too many, are both named."""
    home = Home.open(store)
    opened, batch = home.store(), home.committed()
    prefix = timers_of("count", "event")
    with opened.shard(0).at(batch) as view:
        lost = next(row for row, _ in view.scan(prefix, after_prefix(prefix)))
    odd = timer_row(prefix, 5, "nobody")
    opened.shard(0).commit(Fence(99, batch, 0), {"meddler": {lost: None, odd: b""}})
    opened.close()
    wrong = " ".join(finding.wrong for finding in verify(store).faults)
    assert "the index does not have it" in wrong
    assert "key 'nobody', is in the index, and no slate has it" in wrong


def test_a_read_of_a_damaged_row_is_refused(store: Path) -> None:
    """A flipped byte in a value is a StoreError that names the slate and the repair."""
    path = store / "shards" / "shard-0000" / "data.mdb"
    data = bytearray(path.read_bytes())
    places = [at for at in range(len(data)) if data.startswith(b'"text":"xxxx', at)]
    for place in places:
        data[place + 9] = ord("y")
    path.write_bytes(data)
    with pytest.raises(StoreError, match=r"slate of 'count', key 'key .*restore the whole store"):
        meaning(store)


def test_damaged_staged_output_is_refused(store: Path) -> None:
    """Output that was staged is not published unless it is whole; the file is named."""
    (path,) = (store / "staging").iterdir()
    good = path.read_bytes()
    assert read_staged(path).outputs == {"out": [(1, "k", b"{}")]}
    for bad in (b"", good[:-1], good[:20], good[:15] + b"\xff" + good[16:]):
        path.write_bytes(bad)
        with pytest.raises(StoreError, match=rf"{path.name}: staged output of batch 2 cannot"):
            read_staged(path)
