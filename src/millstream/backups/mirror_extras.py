"""Adds what a backup needs to a mirror of a shared store.

A mirror has the shards, the progress and the facts of the last commit, for readers. A backup also
needs the progress of actions and the records of what was poured, which must not be newer than the
logs (`before_commit`), then the staged output and the packages of jobs (`after_commit`), and with
the logs the positions of their readers (`bring_readers`).
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from functools import partial
from pathlib import Path

import msgspec

from millstream.actions.place_records import fetch_action_records
from millstream.actions.record import folder_of
from millstream.durable import read_record, with_checksum, write_record, write_unsynced
from millstream.log import readers
from millstream.log.place_readers import readers_in
from millstream.log.poured_record import ID_BYTES, LAST, POURED, Poured, records_of
from millstream.places.place import Place, folders_in, persistent, read
from millstream.stores.package_files import FOLDER, put_package
from millstream.stores.progress import decoded
from millstream.stores.shared.commit_record import StoreState
from millstream.stores.shared.shared_home import staged_in
from millstream.stores.shared.staged_objects import staged_name

PATIENCE = 60.0
"""Seconds that the place may be unreachable."""


def before_commit(place: Place, folder: Path) -> None:
    """Fetch the progress of actions, and what was poured, into the folder of a mirror."""
    for left in (folder_of(folder), folder / POURED):
        shutil.rmtree(left, ignore_errors=True)
    fetch_action_records(place, folder, PATIENCE)
    for source in persistent(lambda: [*folders_in(place, f"{POURED}/")], PATIENCE):
        _fetch_poured(place, folder / POURED / source, source)


def _fetch_poured(place: Place, folder: Path, source: str) -> None:
    """Fetch the last record of what was poured into a source, and the files that it names."""
    while True:
        listed = persistent(lambda: [*place.list(records_of(source))], PATIENCE)
        if not listed:
            return
        data = persistent(partial(read, place, listed[-1].name), PATIENCE)
        if not data or not data[ID_BYTES:]:
            if data is None:
                continue  # a newer record has replaced it meanwhile
            return
        record = data[ID_BYTES:]
        pending = msgspec.json.decode(record, type=Poured).pending
        names = [] if pending is None else pending.files
        lines = [persistent(partial(read, place, name), PATIENCE) for name in names]
        if None in lines:
            continue  # the lines were appended meanwhile, and deleted
        folder.mkdir(parents=True)
        write_record(folder / LAST, record, synced=False)
        for name, content in zip(names, lines, strict=True):
            assert content is not None
            (folder / name.rpartition("/")[2]).write_bytes(content)
        return


def after_commit(place: Place, folder: Path, state: StoreState) -> None:
    """Fetch the staged output, as of the mirror's commit, and the packages."""
    staging, progress = folder / "staging", decoded(state.progress)
    shutil.rmtree(staging, ignore_errors=True)
    staging.mkdir(parents=True)
    inline = staged_in(state.output)
    for name in (*progress.staged, *(name for _, names in progress.unpublished for name in names)):
        data = inline.get(name)
        if data is None:
            data = persistent(partial(read, place, staged_name(name)), PATIENCE)
        if data is not None:  # otherwise the sinks have it
            write_unsynced(staging / name, with_checksum(data))
    shown = decoded(read_record(folder / "progress"))
    shown.staged, shown.unpublished = progress.staged, progress.unpublished
    write_record(folder / "progress", msgspec.json.encode(shown), synced=False)
    for listed in persistent(lambda: [*place.list(f"{FOLDER}/")], PATIENCE):
        data = persistent(partial(read, place, listed.name), PATIENCE)
        if data is not None:
            put_package(folder, data)


def bring_readers(place: Place, logs: Path, streams: Iterable[str]) -> None:
    """Fetch the positions of the logs' readers into the mirrors of the logs."""
    for stream in streams:
        shutil.rmtree(logs / stream / "readers", ignore_errors=True)
        for name, position in readers_in(place, stream).items():
            readers.commit(logs / stream, name, (position.offset, position.records))
