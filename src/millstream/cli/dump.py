"""Where a dump of slates goes, and the writing of it.

A dump is written beside its place under another name and then renamed, so that it is there whole or
not at all. Memory is bounded: `ROWS` slates at a time.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from millstream.stores.reader import StoredSlate

ROWS = 10_000
"""Slates written at a time."""
LINES = ("jsonl", "json")
SUFFIXES = (".jsonl", ".json", ".ndjson")


@dataclass(frozen=True, slots=True)
class Destination:
    """One file, in one format."""

    format: str
    file: Path


def destination(to: str, update: str, overwrite: bool) -> Destination:
    """The file that `FORMAT:PATH` means; refused if it is there and may not be replaced."""
    form, colon, path = to.partition(":")
    if not (colon and path) or form not in (*LINES, "parquet"):
        raise click.UsageError(f"--to must be parquet:DIR or jsonl:FILE_OR_DIR; got {to!r}")
    place = Path(path).expanduser()
    if form == "parquet":
        file = place if place.suffix == ".parquet" else place / f"{update}.parquet"
    else:
        file = place if place.suffix in SUFFIXES else place / f"{update}.jsonl"
    if file.exists() and not overwrite:
        raise click.UsageError(f"{file} is there already; name another place, or say --overwrite")
    return Destination("jsonl" if form in LINES else form, file)


def write(slates: Iterable[StoredSlate], to: Destination) -> int:
    """Write the slates, in the order given, to the destination; how many there were.

    THE SEAM for large stores: one process reads every shard here. A dump through Spark takes the
    place of this function: a task a shard, each writing its own part.
    """
    unfinished = to.file.with_name(f".{to.file.name}.unfinished")
    try:
        to.file.parent.mkdir(parents=True, exist_ok=True)
        rows = (_row(slate) for slate in slates)
        count = (_write_lines if to.format == "jsonl" else _write_parquet)(rows, unfinished)
        os.replace(unfinished, to.file)
    except OSError as error:
        raise click.ClickException(f"cannot write {to.file}: {error.strerror or error}") from None
    finally:
        unfinished.unlink(missing_ok=True)
    return count


def _row(slate: StoredSlate) -> dict[str, Any]:
    from millstream.cli.slates import record

    return record(slate)


def _chunks(rows: Iterator[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    while chunk := list(islice(rows, ROWS)):
        yield chunk


def _write_lines(rows: Iterator[dict[str, Any]], file: Path) -> int:
    import msgspec

    encoder, count = msgspec.json.Encoder(), 0
    with file.open("wb") as out:
        for chunk in _chunks(rows):
            out.write(encoder.encode_lines(chunk))
            count += len(chunk)
    return count


def _write_parquet(rows: Iterator[dict[str, Any]], file: Path) -> int:
    """Columns key, slate (JSON text: slates of one update need not look alike) and ts."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from millstream.cli.slates import as_json

    schema = pa.schema(
        [("key", pa.string()), ("slate", pa.string()), ("ts", pa.timestamp("us", tz="UTC"))]
    )
    count = 0
    with pq.ParquetWriter(file, schema, compression="zstd") as writer:
        for chunk in _chunks(rows):
            lines = [{**row, "slate": as_json(row["slate"])} for row in chunk]
            writer.write_table(pa.Table.from_pylist(lines, schema=schema))
            count += len(chunk)
    return count
