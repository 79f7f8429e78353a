"""A shared store whose resharding is cut off, or meets a driver, keeps what was committed."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from millstream import App
from millstream.driver.in_process import run
from millstream.driver.maintenance import resharding, shared_resharding
from millstream.driver.maintenance.shared_resharding import reshard_shared
from millstream.errors import StoreError, StoreLocked
from millstream.places.directory_place import DirectoryPlace
from millstream.places.place import SEAL, Place, sealed
from millstream.settings.settings import Settings
from millstream.stores.reader import SlateReader
from millstream.stores.shared.shard_base import BasePart
from millstream.stores.shared.store_mirror import StoreMirror

USERS = 300


class SharedCounts:
    """Clicks counted by user, on a shared store of four shards."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.place = DirectoryPlace(folder / "place")
        self.cache = str(folder / "cache")
        (folder / "in").mkdir()
        self._files = 0

    def run(self) -> None:
        """Let each user click three times more, and count that."""
        app = App("counts", order="arrival")
        app.source("clicks", key="user")

        @app.update("clicks")
        def count(event: object, slate: dict[str, int]) -> None:
            slate["n"] = slate.get("n", 0) + 1

        lines = "".join(f'{{"user": "u{number % USERS}"}}\n' for number in range(3 * USERS))
        self._files += 1
        (self.folder / "in" / f"{self._files}.json").write_text(lines)
        options: dict[str, Any] = {"shards": None if self._files > 1 else 4, "available_now": True}
        options |= {"place": self.place.address, "cache": self.cache, "batch_bytes": 4_000}
        sources = {"clicks": f"json:{self.folder / 'in'}"}
        run(app, Settings.of("counts", self.folder / f"work{self._files}", sources, {}, **options))

    def reshard(
        self,
        shards: int,
        say: Callable[[str], None] = lambda sentence: None,
        place: Place | None = None,
    ) -> None:
        reshard_shared(place or self.place, shards, say, lease=0.1, cache=self.cache)

    def slates(self) -> dict[str, Any]:
        with (
            closing(StoreMirror(self.place, self.folder / "read", 0.0)) as mirror,
            SlateReader(mirror.path) as reader,
        ):
            return {slate.key: slate.value for slate in reader.scan("count")}


class AlteredBases(DirectoryPlace):
    """A place that stores the first base with other content."""

    def __init__(self, path: Path, altered: Callable[[str, bytes], bytes]) -> None:
        super().__init__(path)
        self._altered = altered

    def put(self, name: str, data: bytes) -> None:
        first = name.startswith("bases/0000/")
        super().put(name, self._altered(name, data) if first else data)


def _without_a_row(name: str, data: bytes) -> bytes:
    part = msgspec.msgpack.decode(data[:-SEAL], type=BasePart)
    shorter = BasePart(part.keys[:-1], part.values[:-1])
    return sealed(name, msgspec.msgpack.encode(shorter))


def _with_another_value(name: str, data: bytes) -> bytes:
    part = msgspec.msgpack.decode(data[:-SEAL], type=BasePart)
    return sealed(name, msgspec.msgpack.encode(BasePart(part.keys, part.values[::-1])))


def _damaged(name: str, data: bytes) -> bytes:
    return data[:-1] + bytes([data[-1] ^ 1])


@pytest.fixture
def counts(tmp_path: Path) -> SharedCounts:
    return SharedCounts(tmp_path)


@pytest.mark.parametrize("after", range(6))
def test_a_shared_resharding_that_is_cut_off_goes_on(
    counts: SharedCounts, after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it is interrupted at any of its records, the store is unchanged. A restart gives the same
    slates."""
    counts.run()
    before, writes, original = counts.slates(), 0, resharding.write_record

    def counting(path: Path, data: bytes, **options: bool) -> None:
        nonlocal writes
        if writes == after:
            raise KeyboardInterrupt
        writes += 1
        original(path, data, **options)

    with monkeypatch.context() as patched:
        patched.setattr(resharding, "write_record", counting)
        try:
            counts.reshard(7)
        except KeyboardInterrupt:
            assert counts.slates() == before
    counts.reshard(7)
    assert counts.slates() == before
    counts.run()
    assert counts.slates() == {key: {"n": 6} for key in before}


def test_a_resharding_goes_on_after_its_last_shard(
    counts: SharedCounts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shards that were moved before the interruption are not moved again."""
    counts.run()
    before = counts.slates()

    def cut_off(*given: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(shared_resharding, "write_base", cut_off)
        with pytest.raises(KeyboardInterrupt):
            counts.reshard(7)
    moved: list[int] = []
    original = resharding._move

    def noted(view: Any, folder: Path, note: Any, rows: Any, done: bool) -> None:
        if not done:
            moved.append(1)
        original(view, folder, note, rows, done)

    monkeypatch.setattr(resharding, "_move", noted)
    counts.reshard(7)
    assert moved == []
    assert counts.slates() == before


def test_a_driver_that_ran_meanwhile_is_not_undone(
    counts: SharedCounts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Batches that were committed after the rows were fetched stay: the resharding is refused."""
    counts.run()
    original = shared_resharding.StoreMirror.close

    def then_run(mirror: StoreMirror) -> None:
        original(mirror)
        monkeypatch.undo()
        counts.run()

    monkeypatch.setattr(shared_resharding.StoreMirror, "close", then_run)
    with pytest.raises(StoreLocked, match="meanwhile"):
        counts.reshard(7)
    assert {value["n"] for value in counts.slates().values()} == {6}


@pytest.mark.parametrize("altered", [_without_a_row, _with_another_value, _damaged])
def test_new_bases_are_read_back(
    counts: SharedCounts, altered: Callable[[str, bytes], bytes]
) -> None:
    """If the place holds other rows than those that were written, the resharding is refused, and
    the store stays as it was; another attempt succeeds."""
    counts.run()
    before = counts.slates()
    with pytest.raises(StoreError, match="bases/0000/"):
        counts.reshard(7, place=AlteredBases(counts.folder / "place", altered))
    assert counts.slates() == before
    counts.reshard(7)
    assert counts.slates() == before
