"""Backs up a store as of one committed batch, also while its application runs.

The order matters, because the store changes during the backup. It copies:

1. the progress of actions, and of Spark jobs that pour into sources, so that nothing counts as done
   that is not in the logs;
2. the last committed batch, with a view of every shard as of it;
3. output of that batch that the sinks may not have yet, the lists of files taken in, and packages;
4. the event logs: those of sources up to their current end, from which the restored store reads the
   records that came after the batch; those of outputs up to the batch, or up to the batch before if
   its output is still staged, since the restored store then publishes it;
5. the rows.

What sinks have written outside of the store is not part of a backup.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from millstream.backups.chunks import ChunkWriter, file_chunks, row_chunks
from millstream.backups.record import BackupRecord, ChunkId, newest, write_record
from millstream.durable import without_checksum
from millstream.errors import StaleRead, StoreError
from millstream.log.blocks import walk_bytes
from millstream.log.poured_record import LAST, POURED, Poured
from millstream.log.segments import encode_end, list_segments, read_end
from millstream.places.place import Place
from millstream.stores.contract import View
from millstream.stores.home import Home
from millstream.stores.progress import Progress
from millstream.stores.soft import read_committed
from millstream.wall_clock import wall_clock

TRIES = 200
PAUSE = 0.01
WHOLE = ("app.json",)
"""Files that are copied as they are, if they exist."""
FOLDERS = ("sources", "packages")
"""Folders whose files are copied as they are."""


def back_up(store: Path, place: Place, say: Callable[[str], None]) -> BackupRecord:
    """Back up a store to a place; returns the record of the backup. Does not change the store."""
    before = newest(place)
    home = Home.open(store)
    if before is not None and before.store != home.facts.id:
        raise StoreError(
            f"{place.address}: has backups of another store, of app {before.app!r}; name another "
            "folder or prefix"
        )
    writer = ChunkWriter(place, before)
    files: dict[str, list[ChunkId]] = {}

    def keep(name: str, content: bytes) -> None:
        files[name] = [writer.add(chunk) for chunk in file_chunks(content)]

    for path in _files(store / "actions"):
        keep(str(path.relative_to(store)), path.read_bytes())
    for path, content in _poured_files(store / POURED):
        keep(str(path.relative_to(store)), content)
    with ExitStack() as opened:
        home, progress, views = _opened(store, opened)
        staged = _staged(home, progress)
        for name, content in staged.items():
            keep(f"staging/{name}", content)
        for name in (
            *WHOLE,
            *(str(p.relative_to(store)) for f in FOLDERS for p in _files(store / f)),
        ):
            if (store / name).is_file():
                keep(name, (store / name).read_bytes())
        last = _last_published(progress, staged)
        query = progress.query or home.facts.id
        for log in sorted(path for path in (store / "logs").glob("*") if path.is_dir()):
            for name, content in _log_files(log, query, last):
                keep(f"logs/{log.name}/{name}", content)
        shards = []
        for number, view in enumerate(views):
            say(f"shard {number + 1} of {len(views)}")
            shards.append([writer.add(chunk) for chunk in row_chunks(view.scan(b""))])
    writer.flush()
    taken = wall_clock()
    moment = datetime.fromtimestamp(taken / 1e6, UTC).strftime("%Y%m%dT%H%M%S.%fZ")
    record = BackupRecord(
        f"{moment}-{max(progress.batch, 0):012d}",
        home.facts.app,
        home.facts.id,
        progress.batch,
        taken,
        msgspec.json.encode(home.facts),
        msgspec.json.encode(progress),
        shards,
        files,
        writer.packs,
        writer.chunks,
        writer.written,
        sum(chunk.length for chunk in writer.chunks.values()),
    )
    write_record(place, record)
    return record


def _files(folder: Path) -> list[Path]:
    """The files of a folder, without the temporary ones of `durable`."""
    paths = folder.rglob("*") if folder.is_dir() else ()
    unfinished = re.compile(r"\..+\.tmp")
    return sorted(p for p in paths if p.is_file() and not unfinished.fullmatch(p.name))


def _poured_files(folder: Path) -> Iterator[tuple[Path, bytes]]:
    """For each source, the record of what was poured, and the files of lines that it names."""
    for path in sorted(folder.glob(f"*/{LAST}")):
        for _ in range(TRIES):
            record = path.read_bytes()
            pending = msgspec.json.decode(
                without_checksum(record.rstrip(b"\n")), type=Poured
            ).pending
            names = [] if pending is None else pending.files
            try:
                files = [path.parent / Path(name).name for name in names]
                contents = [(path, record), *((file, file.read_bytes()) for file in files)]
            except FileNotFoundError:
                time.sleep(PAUSE)  # the lines were appended meanwhile, and the record has changed
                continue
            yield from contents
            break
        else:
            raise StoreError(f"{path}: names files that are not there; restore them, or try again")


def _opened(store: Path, opened: ExitStack) -> tuple[Home, Progress, list[View]]:
    """Opens the store with a view of every shard as of its last committed batch."""
    for _ in range(TRIES):
        home = Home.open(store)
        progress = read_committed(store)
        shards = home.store()
        with ExitStack() as attempt:
            attempt.callback(shards.close)
            try:
                home.batch_of(progress)
                views: list[View] = []
                if progress.batch >= 0:
                    views = [
                        attempt.enter_context(shards.shard(number).at(progress.batch))
                        for number in range(shards.shards)
                    ]
            except StaleRead:
                time.sleep(PAUSE)
                continue
            opened.enter_context(attempt.pop_all())
            return home, progress, views
    raise StoreError(f"{store}: it changes faster than it can be opened; try again")


def _staged(home: Home, progress: Progress) -> dict[str, bytes]:
    """The staged output that still exists; the sinks have the rest."""
    names = [*progress.staged, *(name for _, names in progress.unpublished for name in names)]
    contents = {}
    for name in names:
        try:
            contents[name] = (home.staging / name).read_bytes()
        except FileNotFoundError:
            continue
    return contents


def _last_published(progress: Progress, staged: dict[str, bytes]) -> int:
    """The last batch whose output must come from the logs, and not from staged files."""
    batches = [(progress.batch, progress.staged), *progress.unpublished]
    kept = [batch for batch, names in batches if any(name in staged for name in names)]
    return min(kept, default=progress.batch + 1) - 1


def _log_files(log: Path, query: str, last: int) -> Iterator[tuple[str, bytes]]:
    """The files of a log, up to the output of a batch."""
    for path in _files(log / "readers"):
        yield f"readers/{path.name}", path.read_bytes()
    end = read_end(log)
    if end is None:
        return
    cut: tuple[int, int] | None = None
    for segment in list_segments(log):
        if segment.offset >= end[0] and segment.offset:
            break
        try:
            content = Path(segment.path).read_bytes()[: end[0] - segment.offset]
        except FileNotFoundError:
            continue  # retention has removed it
        cut = _cut(content, segment.offset, segment.first, query, last)
        if cut is not None:
            content = content[: cut[0] - segment.offset]
        yield Path(segment.path).name, content
        if cut is not None:
            break
    yield "end", encode_end(*(cut or tuple(end)))


def _cut(content: bytes, offset: int, first: int, query: str, last: int) -> tuple[int, int] | None:
    """The position in a segment where output of batches after `last` begins; None if there is
    none."""
    for block in walk_bytes(content, offset, first):
        for tag in block.tags():
            tag_query, _, rest = tag.tag.partition(":")
            batch = rest.partition(":")[0]
            if tag_query == query and batch.isdigit() and int(batch) > last:
                return block.offset, block.header.first
    return None
