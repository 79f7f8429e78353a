"""Restores a backup to a shared store: writes everything to an empty place, and the commit last.

The backup is first restored completely, and checked, to a store in a folder of this host
(`restoration`). That store is then copied to the place: the shards as bases, the logs and lists of
files in pieces. Until the commit, readers find no store in the place. If anything fails, all
objects are deleted again.
"""

from __future__ import annotations

import shutil
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from uuid import uuid4

import msgspec

from millstream.actions.place_records import put_action_record
from millstream.actions.record import ActionRecords, folder_of
from millstream.backups.record import BackupRecord
from millstream.backups.restoration import EPOCH, restore
from millstream.durable import read_checked, read_record
from millstream.errors import StoreError
from millstream.log.blocks import walk_bytes
from millstream.log.place_readers import commit_in
from millstream.log.place_writer import log_pieces
from millstream.log.poured_record import LAST, POURED, Poured, lines_of, records_of
from millstream.log.readers import read_committed
from millstream.log.segments import list_segments, read_end
from millstream.places.host_cache import working_folder
from millstream.places.piece_log import JOIN_BYTES, PieceLog
from millstream.places.place import Place, persistent, sealed
from millstream.sources.record_log import list_pieces
from millstream.stores.home import READABLE, Home
from millstream.stores.lmdb import LmdbStore
from millstream.stores.package_files import FOLDER, put_package
from millstream.stores.progress import decoded
from millstream.stores.shared.commit_log import PATIENCE, CommitLog
from millstream.stores.shared.commit_record import CommitRecord
from millstream.stores.shared.manifest import BaseRef, ShardManifest
from millstream.stores.shared.mirror_folder import held_folder
from millstream.stores.shared.shard_base import write_base
from millstream.stores.shared.shared_home import INLINE_BYTES
from millstream.stores.shared.staged_objects import staged_name
from millstream.wall_clock import wall_clock

AT_ONCE = 4
"""The number of bases that are written in parallel."""


def restore_into(
    backups: Place, record: BackupRecord, place: Place, say: Callable[[str], None]
) -> None:
    """Restore a backup to a shared store, in an empty place.

    Raises StoreError, and leaves nothing, if a part of the backup is missing or damaged.
    """
    _check_empty(place)
    work = working_folder(place.address, "restore")
    with held_folder(work):
        folder = work / "store"
        try:
            shutil.rmtree(folder, ignore_errors=True)
            restore(backups, record, folder, say)
            take_to(place, folder, say)
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def take_to(place: Place, folder: Path, say: Callable[[str], None]) -> None:
    """Copy a store, which must not run, from a folder to an empty place."""
    _check_empty(place)
    home = Home.open(folder)
    if home.facts.format not in READABLE[1:]:
        raise StoreError(
            f"{folder}: the store has format {home.facts.format}, and a shared one has format "
            f"{READABLE[1]} or later; restore it into a folder, start the application on it once, "
            "and copy that"
        )
    try:
        _take(place, home, say)
    except BaseException:
        place.delete([listed.name for listed in place.list("")])
        raise


def _check_empty(place: Place) -> None:
    listed = next(iter(place.list("")), None)
    if listed is not None:
        raise StoreError(
            f"{place.address}: must be empty, but has {listed.name}; name another place, or delete "
            "it first"
        )


def _take(place: Place, home: Home, say: Callable[[str], None]) -> None:
    folder, progress = home.path, decoded(home.read_progress())
    bases = _bases(place, home, progress.batch, say) if progress.batch >= 0 else []
    say("event logs")
    for log in sorted(path for path in (folder / "logs").glob("*") if path.is_dir()):
        _take_log(place, log)
    for path in sorted((folder / "sources").glob("*.log")):
        _append_all(list_pieces(place, path.stem), _line_pieces(path.read_bytes()))
    _take_actions(place, folder)
    for path in sorted((folder / POURED).glob(f"*/{LAST}")):
        _take_poured(place, path)
    for path in sorted((folder / FOLDER).glob("*.zip")):
        put_package(folder, path.read_bytes(), place)
    output = {}
    for name in progress.staged:
        data = read_checked(home.staging / name)
        if len(data) <= INLINE_BYTES:
            output[name] = data
        else:
            _put(place, staged_name(name), data)
    batch = max(progress.batch, 0)
    progress.batch = batch
    commit = CommitRecord(
        batch=batch,
        epoch=EPOCH,
        id=uuid4().hex,
        written=wall_clock(),
        host=socket.gethostname(),
        progress=msgspec.json.encode(progress),
        output=msgspec.msgpack.encode(output) if output else b"",
        manifest_at=batch,
        manifest=ShardManifest(
            {base.shard: base for base in bases}, [], {base.shard: base.lineage for base in bases}
        ),
        facts=msgspec.json.encode(home.facts),
        description=read_record(folder / "app.json"),
    )
    if not CommitLog(place).create(commit):
        raise StoreError(f"{place.address}: another store was created there meanwhile")


def _bases(place: Place, home: Home, batch: int, say: Callable[[str], None]) -> list[BaseRef]:
    """Write every shard as a base. A shard's last change is then the base itself."""
    store = LmdbStore(home.shards, home.facts.shards)

    def base(shard: int) -> BaseRef:
        with store.shard(shard).at(batch) as view:
            written = write_base(place, shard, batch, (batch, ()), view, PATIENCE)
        say(f"shard {shard + 1} of {home.facts.shards} to {place.address}")
        return msgspec.structs.replace(written, lineage=(batch, (written.name,)))

    try:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            return [*pool.map(base, range(home.facts.shards))]
    finally:
        store.close()


def _take_log(place: Place, log: Path) -> None:
    end, pieces = read_end(log), log_pieces(place, log.name)
    if end is not None:
        segments = list_segments(log)
        start = (segments[0].offset, segments[0].first) if segments else tuple(end)
        if start[0]:
            pieces.start_at(start)
        for segment in segments:
            content = Path(segment.path).read_bytes()[: end[0] - segment.offset]
            _append_all(pieces, _block_pieces(content, segment.offset, segment.first))
    for path in sorted((log / "readers").glob("*.json")):
        commit_in(place, log.name, path.stem, read_committed(path))


def _append_all(pieces: PieceLog, content: Iterator[tuple[tuple[int, ...], bytes]]) -> None:
    for position, data in content:
        if not pieces.append(position, data).won:
            raise StoreError(f"{pieces.address}: another process writes there; stop it first")


def _block_pieces(
    content: bytes, offset: int, first: int
) -> Iterator[tuple[tuple[int, int], bytes]]:
    """Divides bytes of a log into pieces of whole blocks, each with its position."""
    begin = (offset, first)
    for block in walk_bytes(content, offset, first):
        end = (block.next_offset, block.header.first + block.header.count)
        if end[0] - begin[0] >= JOIN_BYTES or end[0] == offset + len(content):
            yield begin, content[begin[0] - offset : end[0] - offset]
            begin = end


def _line_pieces(content: bytes) -> Iterator[tuple[tuple[int], bytes]]:
    """Divides a list of files into pieces of whole lines, each with its position."""
    at = 0
    while at < len(content):
        stop = content.find(b"\n", min(at + JOIN_BYTES, len(content)) - 1) + 1
        if not stop:
            return  # an unfinished line
        yield (at,), content[at:stop]
        at = stop


def _take_actions(place: Place, folder: Path) -> None:
    records = ActionRecords(folder)
    for path in sorted(folder_of(folder).glob("[!.]*")):
        data = read_record(path)
        if "+" in path.name and data is not None:
            put_action_record(place, path.name, data)
        elif (position := records.read_position(path.name)) is not None:
            put_action_record(place, path.name, msgspec.json.encode(position))


def _take_poured(place: Place, path: Path) -> None:
    """Copy what was poured into a source: as the first record in the place, with its files."""
    source, number = path.parent.name, f"{0:012d}"
    poured = msgspec.json.decode(read_record(path) or b"{}", type=Poured)
    if poured.pending is not None:
        names = [f"{lines_of(source)}{number}-{Path(file).name}" for file in poured.pending.files]
        for name, file in zip(names, poured.pending.files, strict=True):
            _put(place, name, (path.parent / Path(file).name).read_bytes())
        poured.pending = msgspec.structs.replace(poured.pending, files=names)
    _put(place, records_of(source) + number, uuid4().bytes + msgspec.json.encode(poured))


def _put(place: Place, name: str, data: bytes) -> None:
    persistent(partial(place.put, name, sealed(name, data)), PATIENCE)
