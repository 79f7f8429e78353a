"""Where a dump of slates goes, and which way: one file by this process, or parts through Spark.

Either is written beside its place under another name and then renamed, so that it is there whole or
not at all. A dump to `parquet:DIR` is `DIR/count.parquet`, or, of a large store, the folder
`DIR/count/` with a part for each of Spark's tasks; whoever reads DIR finds the same slates in both.
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

from millstream.cli.progress import say
from millstream.cli.stopping import stoppable
from millstream.durable import sync
from millstream.errors import CommandError, RunError
from millstream.sinks.slate_files import SUFFIXES, write_slates

if TYPE_CHECKING:
    from millstream.spark.dump import Dumped
    from millstream.stores.reader import StoredSlate

LARGE_BYTES = 256 * 1024 * 1024
"""Slates on disk from which a dump goes through Spark. One process writes 100 MB of them in 3.5
seconds, which is about what Spark takes to start."""
FORMATS = {"jsonl": "jsonl", "json": "jsonl", "parquet": "parquet"}
FILE_SUFFIXES = {"jsonl": (".jsonl", ".json", ".ndjson"), "parquet": (".parquet",)}
_PART = re.compile(r"part-\d{5}\.(jsonl|parquet)")
MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Destination:
    """One file, or instead of it a folder of parts where the user named no file."""

    format: str
    file: Path
    folder: Path | None

    @property
    def taken(self) -> list[Path]:
        """What is there already."""
        return [p for p in (self.file, self.folder) if p is not None and os.path.lexists(p)]


def destination(to: str, update: str, overwrite: bool) -> Destination:
    """What `FORMAT:PATH` means; refused if it is there and may not be replaced."""
    form, colon, path = to.partition(":")
    if not (colon and path) or form not in FORMATS:
        raise CommandError(f"--to must be parquet:DIR or jsonl:FILE_OR_DIR; got {to!r}")
    form, place = FORMATS[form], Path(path).expanduser()
    if place.suffix in FILE_SUFFIXES[form]:
        found = Destination(form, place, None)
    else:
        found = Destination(form, place / f"{update}{SUFFIXES[form]}", place / update)
    for taken in found.taken:
        if not overwrite:
            raise CommandError(f"{taken} is there already; name another place, or say --overwrite")
        if not _is_a_dump(taken):
            raise CommandError(f"{taken} is not a dump; name another place, or move it away")
    return found


def _is_a_dump(path: Path) -> bool:
    """Whether it may be replaced: any file may, and a folder that holds nothing but parts."""
    return not path.is_dir() or all(_PART.fullmatch(name) for name in os.listdir(path))


def is_large(store: Path) -> bool:
    """Whether the slates take so much room that Spark is worth its start."""
    files = (store / "shards").glob("*/data.mdb")
    return sum(file.stat().st_size for file in files) > LARGE_BYTES


def write(slates: Iterable[StoredSlate], to: Destination) -> int:
    """Write the slates, in the order given, to the one file; how many there were."""
    unfinished = to.file.with_name(f".{to.file.name}.unfinished")
    try:
        to.file.parent.mkdir(parents=True, exist_ok=True)
        rows = ((slate.key, slate.value, slate.ts) for slate in slates)
        count = write_slates(to.format, unfinished, rows)
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
    """Write the slates through Spark, to a folder of parts."""
    folder = to.folder
    if folder is None:
        raise CommandError(
            f"--spark writes a part for each task, and {to.file} is one file; name a directory"
        )
    say(f"dumping {update!r} of store {store} to {folder}, starting Spark ...")

    unfinished = folder.with_name(f".{folder.name}.unfinished")

    def work(stop: threading.Event) -> Dumped:
        from millstream.spark.dump import dump

        return dump(store, update, to.format, unfinished, stop=stop, written=_tell)

    dumped = stoppable(work)
    try:
        _clear(to)
        unfinished.rename(folder)
        sync(folder.parent)
    except OSError as error:
        raise RunError(f"cannot write {folder}: {error.strerror or error}") from None
    return dumped


def _clear(to: Destination) -> None:
    """Remove an earlier dump."""
    for taken in to.taken:
        if taken.is_dir():
            shutil.rmtree(taken)
        else:
            taken.unlink()


def _tell(size: int) -> None:
    if sys.stderr.isatty():
        click.echo(f"\rmillstream: {size / MIB:,.0f} MiB written ", nl=False, err=True)
