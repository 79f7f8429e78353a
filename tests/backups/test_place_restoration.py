"""Backups become shared stores, and shared stores backups: nothing that a store has is lost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from backups.test_backups import bought, quiet, send, settings, shop, slates
from click.testing import CliRunner

from millstream.actions.place_records import put_action_record
from millstream.actions.record import Position, read_position, write_position
from millstream.backups.backup import back_up
from millstream.backups.place_restoration import restore_into
from millstream.backups.record import PACKS
from millstream.backups.restoration import restore
from millstream.cli.commands.backup import place_of
from millstream.cli.main import main
from millstream.cli.store import mirrored
from millstream.driver.in_process import run
from millstream.driver.outputs.publisher import Publisher
from millstream.driver.pour.place_pour_storage import PlacePourStorage, pour_storage_of
from millstream.driver.pour.poured_log import Piece, PouredLog
from millstream.errors import RunError, StoreError
from millstream.log.entries import Entry
from millstream.log.place_readers import commit_in, readers_in
from millstream.log.place_writer import PlaceLogWriter, log_pieces
from millstream.log.retention import Retention
from millstream.log.writer import LogWriter
from millstream.places.directory_place import DirectoryPlace
from millstream.places.place_address import place_at
from millstream.settings.settings import Settings
from millstream.stores.home import log_of
from millstream.stores.package_files import package_path, put_package
from millstream.verifying.store import verify


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MILLSTREAM_CACHE", str(tmp_path / "cache"))


def shared(tmp_path: Path, address: str, source: str = "log") -> Settings:
    return Settings.of(
        *("shop", tmp_path / "work", {"buys": source}),
        available_now=True,
        place=address,
        cache=str(tmp_path / "cache"),
        shards=None,
    )


def send_to(address: str, *users: str) -> None:
    writer = PlaceLogWriter(place_at(address), "buys")
    writer.append([Entry.of([json.dumps({"user": user}).encode() for user in users])])
    writer.close()


def backed_up(store: Path, tmp_path: Path) -> tuple[Any, Any]:
    place = place_of(str(tmp_path / "backups"))
    return place, back_up(store, place, quiet)


def test_a_store_in_a_folder_becomes_a_shared_one(tmp_path: Path) -> None:
    """Slates, logs, positions and events sent after the last batch are restored, and the shared
    store continues."""
    store, address = tmp_path / "store", f"shared:{tmp_path / 'place'}"
    send(store, "ann", "bob", "ann")
    run(shop(), settings(store))
    send(store, "cem")
    place, record = backed_up(store, tmp_path)
    restore_into(place, record, place_at(address), quiet)
    with mirrored(address, None) as mirror:
        assert slates(mirror) == {"ann": 2, "bob": 1}
        assert bought(mirror) == [("ann", 1), ("ann", 2), ("bob", 1)]
        assert verify(mirror).faults == []
    send_to(address, "ann")
    run(shop(), shared(tmp_path, address))
    with mirrored(address, None) as mirror:
        assert slates(mirror) == {"ann": 3, "bob": 1, "cem": 1}
        assert bought(mirror) == [("ann", 1), ("ann", 2), ("ann", 3), ("bob", 1), ("cem", 1)]


def test_files_are_read_on(tmp_path: Path) -> None:
    """A source of files continues after the position in the backup."""
    folder, address = tmp_path / "in", f"shared:{tmp_path / 'place'}"
    folder.mkdir()
    (folder / "1.json").write_text('{"user": "ann"}\n')
    given = settings(tmp_path / "store")
    given = Settings.of("shop", given.storage.store, {"buys": f"json:{folder}"}, available_now=True)
    run(shop(), given)
    place, record = backed_up(given.storage.store, tmp_path)
    restore_into(place, record, place_at(address), quiet)
    (folder / "2.json").write_text('{"user": "ann"}\n')
    run(shop(), shared(tmp_path, address, f"json:{folder}"))
    with mirrored(address, None) as mirror:
        assert slates(mirror) == {"ann": 2}


@pytest.mark.parametrize("inline", [True, False])
def test_output_that_no_sink_has_is_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, inline: bool
) -> None:
    """Output that was committed but not published at the backup is published after the restore."""

    def fail(*_: Any, **__: Any) -> None:
        raise RunError("no")

    module = "millstream.backups.place_restoration.INLINE_BYTES"
    monkeypatch.setattr(module, 1 << 20 if inline else 0)
    store, address = tmp_path / "store", f"shared:{tmp_path / 'place'}"
    send(store, "ann", "bob")
    with monkeypatch.context() as patched:
        patched.setattr(Publisher, "_publish", fail)
        with pytest.raises(RunError):
            run(shop(), settings(store))
    place, record = backed_up(store, tmp_path)
    restore_into(place, record, place_at(address), quiet)
    # And once more, from the shared store as it is.
    with mirrored(address, None) as mirror:
        second = place_of(str(tmp_path / "second"))
        restore(second, back_up(mirror, second, quiet), tmp_path / "again", quiet)
    run(shop(), shared(tmp_path, address))
    run(shop(), settings(tmp_path / "again"))
    with mirrored(address, None) as mirror:
        assert bought(mirror) == bought(tmp_path / "again") == [("ann", 1), ("bob", 1)]
    assert verify(tmp_path / "again").faults == []


def test_a_log_that_has_let_go_of_its_beginning(tmp_path: Path) -> None:
    """Its records keep their numbers."""
    store, address = tmp_path / "store", f"shared:{tmp_path / 'place'}"
    send(store, "ann", "bob")
    run(shop(), settings(store))
    writer = LogWriter(log_of(store, "buys"), segment_bytes=1, retention=Retention(None, 0))
    writer.append([Entry.of([b'{"user": "ann"}'])])
    writer.append([Entry.of([b'{"user": "cem"}'])])
    writer.close()
    run(shop(), settings(store))
    writer = LogWriter(log_of(store, "buys"), segment_bytes=1, retention=Retention(None, 0))
    writer.retain()
    end = writer.end
    writer.close()
    place, record = backed_up(store, tmp_path)
    restore_into(place, record, place_at(address), quiet)
    chain = log_pieces(place_at(address), "buys").chain()
    assert chain.start[0] > 0
    assert chain.end == end[0]
    send_to(address, "ann")
    run(shop(), shared(tmp_path, address))
    with mirrored(address, None) as mirror:
        assert slates(mirror) == {"ann": 3, "bob": 1, "cem": 1}


def test_actions_packages_readers_and_what_was_poured(tmp_path: Path) -> None:
    """They go from a folder to a place and, through a backup of that, to a folder again."""
    store, address = tmp_path / "store", f"shared:{tmp_path / 'place'}"
    send(store, "ann")
    run(shop(), settings(store))
    (store / "actions").mkdir()
    write_position(store, "alert", Position(7, done=6, failed=1))
    package = put_package(store, b"code")
    poured = PouredLog(
        pour_storage_of("", store, "buys", log_of(store, "buys"), Retention()), "buys"
    )
    poured.pour("query", 3, [Piece(b'{"user": "bob"}\n')])
    poured.close()
    place, record = backed_up(store, tmp_path)
    restore_into(place, record, place_at(address), quiet)

    commit_in(place_at(address), "bought", "somebody", (5, 1))
    put_action_record(
        place_at(address), "alert", msgspec.json.encode(Position(8, done=7, failed=1))
    )
    with mirrored(address, None) as mirror:
        second = place_of(str(tmp_path / "second"))
        taken = back_up(mirror, second, quiet)
    again, other = tmp_path / "again", f"shared:{tmp_path / 'other'}"
    restore(second, taken, again, quiet)
    restore_into(second, taken, place_at(other), quiet)
    assert read_position(again, "alert") == Position(8, done=7, failed=1)
    assert package_path(again, package) is not None
    assert (again / "logs" / "bought" / "readers" / "somebody.json").exists()
    assert "somebody" in readers_in(place_at(other), "bought")
    for storage in (
        pour_storage_of("", again, "buys", log_of(again, "buys"), Retention()),
        PlacePourStorage(place_at(other), "buys", Retention()),
    ):
        log = PouredLog(storage, "buys")
        assert log.has("query", 3)
        log.close()
    run(shop(), settings(again))
    assert slates(again) == {"ann": 1, "bob": 1}


def test_a_large_batch_that_is_being_poured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its lines are in the backup, and the rest of it is appended when the store is opened."""
    store, address = tmp_path / "store", f"shared:{tmp_path / 'place'}"
    send(store, "ann")
    run(shop(), settings(store))
    monkeypatch.setattr("millstream.driver.pour.poured_log.BLOCK_BYTES", 10)
    storage = pour_storage_of("", store, "buys", log_of(store, "buys"), Retention())
    poured = PouredLog(storage, "buys")

    def fail(*_: Any) -> None:
        raise RunError("no")

    lines = b"".join(b'{"user": "bob"}\n' for _ in range(5))
    with monkeypatch.context() as patched:
        patched.setattr(PouredLog, "_append_pending", fail)
        with pytest.raises(RunError):
            poured.pour("query", 0, [Piece(lines)])
    poured.close()
    place, record = backed_up(store, tmp_path)
    restore_into(place, record, place_at(address), quiet)
    log = PouredLog(PlacePourStorage(place_at(address), "buys", Retention()), "buys")
    assert log.has("query", 0)
    log.close()
    run(shop(), shared(tmp_path, address))
    with mirrored(address, None) as mirror:
        assert slates(mirror) == {"ann": 1, "bob": 5}


def test_a_place_that_holds_something_is_refused(tmp_path: Path) -> None:
    """And left as it is."""
    send(tmp_path / "store", "ann")
    run(shop(), settings(tmp_path / "store"))
    place, record = backed_up(tmp_path / "store", tmp_path)
    there = DirectoryPlace(str(tmp_path / "place"))
    there.put("mine", b"content")
    with pytest.raises(StoreError, match=r"must be empty, but has mine"):
        restore_into(place, record, there, quiet)
    assert there.get("mine") == b"content"


def test_a_backup_that_is_not_whole_makes_no_shared_store(tmp_path: Path) -> None:
    """Nothing is left in the place, whichever object fails."""
    send(tmp_path / "store", "ann")
    run(shop(), settings(tmp_path / "store"))
    place, record = backed_up(tmp_path / "store", tmp_path)
    there = DirectoryPlace(str(tmp_path / "place"))

    class Failing(DirectoryPlace):
        def create(self, name: str, data: bytes) -> bool:
            if name.startswith("commits/"):
                raise StoreError("no room")
            return super().create(name, data)

    with pytest.raises(StoreError, match="no room"):
        restore_into(place, record, Failing(str(tmp_path / "place")), quiet)
    assert [*there.list("")] == []
    place.delete([listed.name for listed in place.list(PACKS)])
    with pytest.raises(StoreError, match="is missing"):
        restore_into(place, record, there, quiet)
    assert [*there.list("")] == []


def test_the_commands(tmp_path: Path) -> None:
    """Copy from a folder to a place, from there to another, and back; restore into one."""
    store = tmp_path / "store"
    one, two = f"shared:{tmp_path / 'one'}", f"shared:{tmp_path / 'two'}"
    send(store, "ann", "bob", "ann")
    run(shop(), settings(store))

    def said(*words: str) -> str:
        result = CliRunner().invoke(main, [*words])
        assert result.exit_code == 0, result.output
        return result.output

    assert f"store {one}, a copy as of batch 0" in said("copy", one, "--store", str(store))
    assert "a copy as of batch 0" in said("copy", two, "--store", one)
    assert "a copy as of batch 0" in said("copy", str(tmp_path / "back"), "--store", two)
    backups = str(tmp_path / "backups")
    said("backup", backups, "--store", two)
    three = f"shared:{tmp_path / 'three'}"
    assert f"store {three}, as of batch 0" in said("restore", backups, "--store", three)
    said("verify", "--store", three)
    with mirrored(three, None) as mirror:
        assert slates(mirror) == slates(tmp_path / "back") == {"ann": 2, "bob": 1}
