"""`millstream backup`, `restore` and `copy`: back a store up, restore it, and copy it."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from millstream.cli.store import chosen_store, store_options
from millstream.errors import CommandError
from millstream.model.size import shown_size
from millstream.notices import say

if TYPE_CHECKING:
    from millstream.backups.record import BackupRecord
    from millstream.places.place import Place


def place_of(where: str) -> Place:
    """Returns the place at a folder, or at an address such as s3://BUCKET/PREFIX."""
    from millstream.places.place_address import is_place, place_at

    return place_at(where if is_place(where) else f"shared:{Path(where).expanduser().absolute()}")


@click.command()
@click.argument("to", required=False)
@store_options
@click.option("--list", "listed", metavar="FROM", help="List the backups at FROM instead.")
def backup(to: str | None, store: str | None, app: str | None, listed: str | None) -> None:
    """Back a store up, to a folder or a place such as s3://BUCKET/PREFIX.

    A backup holds everything as of one committed batch: slates, timers, waiting events, event logs,
    positions in sources. The application may run meanwhile. A second backup to the same place adds
    only what has changed. Data in sinks outside the store is not part of it.

    \b
    Examples:
        millstream backup /backups/retail
        millstream backup s3://bucket/backups/retail --store s3://bucket/retail
        millstream backup --list /backups/retail
    """
    from millstream.backups.backup import back_up
    from millstream.backups.record import all_records

    if listed is not None:
        for record in all_records(place_of(listed)):
            taken = datetime.fromtimestamp(record.taken / 1e6, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
            added = shown_size(record.written)
            click.echo(
                f"{record.id}  {record.app}, batch {record.batch}, taken {taken}, {added} added"
            )
        return
    if to is None:
        raise CommandError("name the place to back up to: millstream backup FOLDER|ADDRESS")
    began = time.perf_counter()
    with chosen_store(store, app, logs=None) as folder:
        record = back_up(folder, place_of(to), lambda text: None)
    took = time.perf_counter() - began
    click.echo(
        f"backup {record.id}: batch {record.batch}, {shown_size(record.size)}, of which "
        f"{shown_size(record.written)} are new ({took:.1f} s)"
    )


@click.command()
@click.argument("source", metavar="FROM")
@click.option("--store", metavar="DIR|ADDRESS", help="The new store.")
@click.option("--backup", "id", metavar="ID", help="The backup to restore.  [default: the last]")
@click.option(
    "--check", is_flag=True, help="Only read the whole backup, and check that it is intact."
)
def restore(source: str, store: str | None, id: str | None, check: bool) -> None:
    """Restore a store from a backup, into a folder that does not exist yet, or an empty place.

    Everything is checked while it is read; if something is missing or damaged, no store is made.
    The application continues from the batch of the backup, and reads what its sources have had
    since. Outputs of batches after that one reach the sinks once more: the store counts as a new
    one.

    \b
    Examples:
        millstream restore /backups/retail --store .millstream/retail
        millstream restore /backups/retail --store s3://bucket/retail
        millstream restore s3://bucket/backups/retail --check
    """
    from millstream.backups import restoration
    from millstream.backups.record import newest, read_record

    place = place_of(source)
    record = newest(place) if id is None else read_record(place, id)
    if record is None:
        raise CommandError(f"{source}: there is no backup here")
    if check:
        restoration.check(place, record, lambda text: None)
        click.echo(f"backup {record.id}: batch {record.batch}: complete and intact")
        return
    if store is None:
        raise CommandError("name the new store with --store: a folder, or s3://BUCKET/PREFIX")
    _restore_to(place, record, store)
    say(f"store {store}, as of batch {record.batch}")


@click.command()
@click.argument("to", metavar="DIR|ADDRESS")
@store_options
def copy(to: str, store: str | None, app: str | None) -> None:
    """Copy a store to a new folder or place: to try a change on real data, or to move the store.
    The application may run meanwhile.

    Run the changed application on the copy with sinks and actions of its own:

    \b
        millstream copy /tmp/trial --store .millstream/retail
        millstream plan changed.py --store /tmp/trial
        millstream run changed.py --store /tmp/trial --action alert=stderr --available-now
        millstream copy s3://bucket/retail --store .millstream/retail
    """
    from tempfile import TemporaryDirectory

    from millstream.backups.backup import back_up

    with (
        chosen_store(store, app, logs=None) as folder,
        TemporaryDirectory(prefix=".millstream-copy-", dir=_beside(to)) as temporary,
    ):
        place = place_of(temporary)
        record = back_up(folder, place, lambda text: None)
        _restore_to(place, record, to)
    say(f"store {to}, a copy as of batch {record.batch}")


def _restore_to(place: Place, record: BackupRecord, store: str) -> None:
    """Restores a store from a backup, into a folder or a place."""
    from millstream.backups.place_restoration import restore_into
    from millstream.backups.restoration import restore as restored
    from millstream.places.place_address import is_place, place_at

    if is_place(store):
        restore_into(place, record, place_at(store), lambda text: None)
    else:
        restored(place, record, Path(store).expanduser(), lambda text: None)


def _beside(to: str) -> Path:
    """Returns the folder for temporary files: on the copy's own disk, or in the cache."""
    from millstream.places.host_cache import cache_folder
    from millstream.places.place_address import is_place

    folder = cache_folder() if is_place(to) else Path(to).expanduser().absolute().parent
    folder.mkdir(parents=True, exist_ok=True)
    return folder
