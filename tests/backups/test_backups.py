"""Backups of stores, and stores from backups."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import millstream as ms
from fault_runs.published_rows import read_log_rows
from millstream.backups.backup import back_up
from millstream.backups.record import backup_ids, newest, read_record
from millstream.backups.restoration import check, restore
from millstream.cli.commands.backup import place_of
from millstream.cli.main import main
from millstream.driver.in_process import run
from millstream.errors import StoreError
from millstream.log.writer import Entry, LogWriter
from millstream.settings.settings import Settings
from millstream.stores.home import Home, log_of
from millstream.stores.reader import SlateReader
from millstream.verifying.store import verify


def shop() -> ms.App:
    app = ms.App("shop")
    app.source("buys", key="user")
    app.output("bought")

    @app.update("buys", publishes="bought")
    def count(event: Any, slate: Any) -> Any:
        slate["n"] = slate.get("n", 0) + 1
        yield ms.emit("bought", value=slate["n"])

    return app


def settings(store: Path, **more: Any) -> Settings:
    given = {"available_now": True, "shards": 4, "check_store": False, **more}
    return Settings.of("shop", store, {"buys": "log"}, **given)


def send(store: Path, *users: str) -> None:
    writer = LogWriter(log_of(store, "buys"))
    writer.append([Entry.of([json.dumps({"user": user}).encode() for user in users])])
    writer.close()


def slates(store: Path) -> dict[str, int]:
    with SlateReader(store) as reader:
        return {slate.key: slate.value["n"] for slate in reader.scan("count")}


def bought(store: Path) -> list[tuple[str, int]]:
    rows = read_log_rows(log_of(store, "bought"))
    return sorted((row["key"], row["value"]) for row in rows)


def quiet(text: str) -> None:
    pass


def test_a_restored_store_goes_on_where_the_backup_was(tmp_path: Path) -> None:
    """Slates, outputs and the place in the sources; what was acknowledged and not taken in before
    the backup is taken in after it."""
    store, place = tmp_path / "store", place_of(str(tmp_path / "backups"))
    users = [f"user-{n:03d}" for n in range(300)]
    send(store, *users)
    run(shop(), settings(store))
    send(store, "user-000", "late-comer")
    record = back_up(store, place, quiet)
    check(place, record, quiet)
    send(store, "never-seen")
    run(shop(), settings(store))
    again = tmp_path / "again"
    restore(place, record, again, quiet)
    assert slates(again) == dict.fromkeys(users, 1)
    assert verify(again).faults == []
    run(shop(), settings(again))
    assert slates(again) == {**dict.fromkeys(users, 1), "user-000": 2, "late-comer": 1}
    assert bought(again) == sorted(
        [*((user, 1) for user in users), ("user-000", 2), ("late-comer", 1)]
    )
    assert verify(again).faults == []
    assert Home.open(again).facts.id != Home.open(store).facts.id


def test_a_second_backup_adds_what_has_changed(tmp_path: Path) -> None:
    """And each of them can be restored."""
    store, place = tmp_path / "store", place_of(str(tmp_path / "backups"))
    users = [f"user-{n:05d}" for n in range(5_000)]
    send(store, *users)
    run(shop(), settings(store))
    first = back_up(store, place, quiet)
    send(store, *users[:5])
    run(shop(), settings(store))
    second = back_up(store, place, quiet)
    rows = [{id for shard in one.shards for id in shard} for one in (first, second)]
    assert 1 <= len(rows[1] - rows[0]) <= 5 < len(rows[0])
    assert second.written < first.written
    assert back_up(store, place, quiet).written == 0
    assert len(backup_ids(place)) == 3
    restore(place, read_record(place, first.id), tmp_path / "one", quiet)
    restore(place, read_record(place, second.id), tmp_path / "two", quiet)
    assert slates(tmp_path / "one") == dict.fromkeys(users, 1)
    assert slates(tmp_path / "two") == {**dict.fromkeys(users, 1), **dict.fromkeys(users[:5], 2)}


@pytest.mark.parametrize("flush", [None, 60_000_000])
def test_a_running_store_is_backed_up_as_of_one_batch(tmp_path: Path, flush: int | None) -> None:
    """For any batches during the backup, every event is either in both the slates and the outputs,
    or in neither. A start then processes the rest, each event once."""
    store, place = tmp_path / "store", place_of(str(tmp_path / "backups"))
    writer = LogWriter(log_of(store, "buys"))
    stop, total = threading.Event(), 0
    line = [json.dumps({"user": f"user-{n}"}).encode() for n in range(20)]
    writer.append([Entry.of(line)])
    running = threading.Thread(
        target=lambda: run(shop(), settings(store, available_now=False, flush=flush), stop=stop)
    )
    running.start()
    records = []
    try:
        while len(records) < 4:
            writer.append([Entry.of(line)])
            try:
                record = back_up(store, place, quiet)
            except StoreError:
                continue  # the store is being made
            if record.batch >= 0 and (not records or record.batch > records[-1].batch):
                records.append(record)
    finally:
        stop.set()
        running.join()
        writer.close()
    for number, record in enumerate(records):
        again = tmp_path / f"again-{number}"
        restore(place, record, again, quiet)
        total = sum(slates(again).values())
        assert total == json.loads(record.progress)["events"]
        run(shop(), settings(again))
        found = slates(again)
        assert verify(again).faults == []
        assert bought(again) == sorted((key, n) for key in found for n in range(1, found[key] + 1))


def test_a_file_that_is_being_written_is_no_part_of_it(tmp_path: Path) -> None:
    """It may be gone before it is read, since its writer renames it."""
    store, place = tmp_path / "store", place_of(str(tmp_path / "backups"))
    send(store, "ann")
    run(shop(), settings(store))
    for folder in (log_of(store, "buys") / "readers", store / "actions"):
        folder.mkdir(exist_ok=True)
        (folder / ".shop-sent.tmp").write_bytes(b"unfinished")
    restore(place, back_up(store, place, quiet), tmp_path / "again", quiet)
    assert list((tmp_path / "again").rglob("*.tmp")) == []
    assert slates(tmp_path / "again") == {"ann": 1}


def test_a_damaged_backup_is_refused_and_makes_no_store(tmp_path: Path) -> None:
    """Nothing is left of the try."""
    store, place = tmp_path / "store", place_of(str(tmp_path / "backups"))
    send(store, "ann")
    run(shop(), settings(store))
    record = back_up(store, place, quiet)
    (pack,) = (tmp_path / "backups" / "chunks").iterdir()
    data = bytearray(pack.read_bytes())
    data[5] ^= 1
    pack.write_bytes(data)
    with pytest.raises(StoreError, match="do not fit its checksum"):
        check(place, record, quiet)
    with pytest.raises(StoreError):
        restore(place, record, tmp_path / "again", quiet)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["backups", "store"]
    pack.unlink()
    with pytest.raises(StoreError, match="is missing"):
        restore(place, record, tmp_path / "again", quiet)


def test_backups_of_two_stores_are_kept_apart(tmp_path: Path) -> None:
    """A place has the backups of one."""
    place = place_of(str(tmp_path / "backups"))
    for name in ("one", "two"):
        send(tmp_path / name, "ann")
        run(shop(), settings(tmp_path / name))
    back_up(tmp_path / "one", place, quiet)
    with pytest.raises(StoreError, match="backups of another store"):
        back_up(tmp_path / "two", place, quiet)
    with pytest.raises(StoreError, match="must be a new or an empty folder"):
        restore(place, newest(place), tmp_path / "two", quiet)  # type: ignore[arg-type]


def test_the_commands(tmp_path: Path) -> None:
    """Back up, list, check, restore and copy, as they are written in the docs."""
    store = tmp_path / "store"
    send(store, "ann", "bob", "ann")
    run(shop(), settings(store))

    def said(*words: str) -> str:
        result = CliRunner().invoke(main, [*words])
        assert result.exit_code == 0, result.output
        return result.output

    backups = str(tmp_path / "backups")
    assert "batch 0" in said("backup", backups, "--store", str(store))
    assert "shop, batch 0" in said("backup", "--list", backups)
    assert "complete and intact" in said("restore", backups, "--check")
    assert "as of batch 0" in said("restore", backups, "--store", str(tmp_path / "again"))
    assert "a copy as of batch 0" in said("copy", str(tmp_path / "trial"), "--store", str(store))
    assert slates(tmp_path / "again") == slates(tmp_path / "trial") == {"ann": 2, "bob": 1}


def test_a_shared_store_is_backed_up(tmp_path: Path) -> None:
    """From its last commit; the backup becomes a store in a folder."""
    from millstream.cli.store import mirrored

    address = f"shared:{tmp_path / 'place'}"
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "1.json").write_text('{"user": "ann"}\n{"user": "bob"}\n{"user": "ann"}\n')
    options: dict[str, Any] = {"place": address, "cache": str(tmp_path / "cache"), "shards": 2}
    given = Settings.of(
        "shop", tmp_path / "work", {"buys": f"json:{folder}"}, available_now=True, **options
    )
    run(shop(), given)
    place = place_of(str(tmp_path / "backups"))
    with mirrored(address, None) as mirror:
        record = back_up(mirror, place, quiet)
    again = tmp_path / "again"
    restore(place, record, again, quiet)
    assert slates(again) == {"ann": 2, "bob": 1}
    (folder / "2.json").write_text('{"user": "ann"}\n')
    run(shop(), Settings.of("shop", again, {"buys": f"json:{folder}"}, available_now=True))
    assert slates(again) == {"ann": 3, "bob": 1}
    assert bought(again) == [("ann", 1), ("ann", 2), ("ann", 3), ("bob", 1)]
    assert verify(again).faults == []
