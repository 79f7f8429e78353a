"""Writes a dump of slates: one file from this process, or a folder of parts through Spark.

A dump is written under a temporary name beside its destination and then renamed, so it is complete
or absent. A dump to `parquet:DIR` is `DIR/count.parquet`, or for a large store the folder
`DIR/count/` with a part for each of Spark's tasks; a reader of DIR finds the same slates in both.
In Parquet, slates of a dataclass have a column for each field, unless `?columns=json` is added.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from millstream.cli.stop_signals import stoppable
from millstream.durable import sync
from millstream.errors import CommandError, RunError
from millstream.notices import say
from millstream.sinks.slate_files import SUFFIXES, slate_record, write_slates
from millstream.sources.address import COLUMNS
from millstream.stores.home import Home

if TYPE_CHECKING:
    from millstream.column_types import ColumnType
    from millstream.spark.dump import Dumped
    from millstream.stores.reader import StoredSlate

LARGE_BYTES = 256 * 1024 * 1024
"""The bytes of slates on disk from which a dump goes through Spark. One process writes 100 MB of
them in 3.5 seconds, which is about the time that Spark takes to start."""
FORMATS = {"jsonl": "jsonl", "json": "jsonl", "parquet": "parquet"}
FILE_SUFFIXES = {"jsonl": (".jsonl", ".json", ".ndjson"), "parquet": (".parquet",)}
_PART = re.compile(r"part-\d{5}\.(jsonl|parquet)")
MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Destination:
    """The file of a dump, and the folder for parts instead if the user did not name a file."""

    format: str
    file: Path
    folder: Path | None
    typed: bool = True
    """True if slates of a dataclass have a column for each field, in Parquet."""

    @property
    def taken(self) -> list[Path]:
        """The paths that exist already."""
        return [p for p in (self.file, self.folder) if p is not None and os.path.lexists(p)]


def destination(to: str, update: str, overwrite: bool) -> Destination:
    """Parses `FORMAT:PATH`; CommandError if the path exists and may not be replaced."""
    form, colon, path = to.partition(":")
    if not (colon and path) or form not in FORMATS:
        raise CommandError(f"--to must be parquet:DIR or jsonl:FILE_OR_DIR; got {to!r}")
    form, (path, option, columns) = FORMATS[form], path.partition(COLUMNS)
    if option and (form != "parquet" or columns != "json"):
        raise CommandError(f"--to may end with ?columns=json, of parquet:DIR only; got {to!r}")
    place = Path(path).expanduser()
    if place.suffix in FILE_SUFFIXES[form]:
        parsed = Destination(form, place, None, not option)
    else:
        file = place / f"{update}{SUFFIXES[form]}"
        parsed = Destination(form, file, place / update, not option)
    for taken in parsed.taken:
        if not overwrite:
            raise CommandError(f"{taken} is there already; name another place, or say --overwrite")
        if not _is_a_dump(taken):
            raise CommandError(f"{taken} is not a dump; name another place, or move it away")
    return parsed


def _is_a_dump(path: Path) -> bool:
    """True if it may be replaced: any file, or a folder that holds nothing but parts."""
    return not path.is_dir() or all(_PART.fullmatch(name) for name in os.listdir(path))


def is_large(store: Path) -> bool:
    """True if the slates are so large that starting Spark pays off."""
    files = Home.open(store).shards.glob("*/data.mdb")
    return sum(file.stat().st_size for file in files) > LARGE_BYTES


def record_of(store: Path, update: str, to: Destination) -> ColumnType | None:
    """Returns the columns of an update's slates, as the last run had them; None: JSON text."""
    shape = Home.open(store).facts.slates.get(update)
    return slate_record(shape.columns) if to.typed and shape is not None else None


def write(slates: Iterable[StoredSlate], to: Destination, record: ColumnType | None = None) -> int:
    """Writes the slates, in their order, to one file; returns their number."""
    unfinished = to.file.with_name(f".{to.file.name}.unfinished")
    try:
        to.file.parent.mkdir(parents=True, exist_ok=True)
        rows = ((slate.key, slate.value, slate.ts) for slate in slates)
        count = write_slates(to.format, unfinished, rows, record)
        os.replace(unfinished, to.file)
        if to.folder is not None and to.folder.is_dir():
            shutil.rmtree(to.folder)  # an earlier dump, in parts
        sync(to.file.parent)
    except OSError as error:
        raise RunError(f"cannot write {to.file}: {error.strerror or error}") from None
    finally:
        unfinished.unlink(missing_ok=True)
    return count


def write_parts(store: Path, update: str, to: Destination) -> Dumped:
    """Writes the slates through Spark, to a folder of parts."""
    folder = to.folder
    if folder is None:
        raise CommandError(
            f"--spark writes a part for each task, and {to.file} is one file; name a directory"
        )
    say(f"dumping {update!r} of store {store} to {folder}, starting Spark ...")

    unfinished = folder.with_name(f".{folder.name}.unfinished")

    def work(stop: threading.Event) -> Dumped:
        from millstream.spark.dump import dump

        record = record_of(store, update, to)
        return dump(store, update, to.format, unfinished, record=record, stop=stop, written=_tell)

    dumped = stoppable(work)
    try:
        _clear(to)
        unfinished.rename(folder)
        sync(folder.parent)
    except OSError as error:
        raise RunError(f"cannot write {folder}: {error.strerror or error}") from None
    return dumped


def _clear(to: Destination) -> None:
    """Removes an earlier dump."""
    for taken in to.taken:
        if taken.is_dir():
            shutil.rmtree(taken)
        else:
            taken.unlink()


def _tell(size: int) -> None:
    if sys.stderr.isatty():
        click.echo(f"\rmillstream: {size / MIB:,.0f} MiB written ", nl=False, err=True)
