"""Reads back the rows that an output's files and logs have."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from millstream.log.reader import LogReader
from millstream.sinks.parquet_columns import UNFIT
from millstream.sinks.row_files import BYTES, VALUE, Row, decode_row

PART = re.compile(r"part-([A-Za-z0-9]{1,8})-(\d{8,})(?:\.jsonl|\.parquet)")


def read_rows(directory: str | Path) -> Iterator[Row]:
    """Yields all rows of a sink's directory as they were published: by query, file and position."""
    parts = [part for file in Path(directory).iterdir() if (part := PART.fullmatch(file.name))]
    for part in sorted(parts, key=lambda part: (part[1], int(part[2]))):
        path = Path(directory, part[0])
        yield from json_rows(path) if path.suffix == ".jsonl" else parquet_rows(path)


def json_rows(path: Path) -> Iterator[Row]:
    with open(path, "rb") as file:
        yield from map(decode_row, file)


def parquet_rows(path: Path) -> Iterator[Row]:
    file = pq.ParquetFile(pa.py_buffer(path.read_bytes()))
    for batch in file.iter_batches(8192, use_threads=False):
        names = batch.schema.names
        columns = [
            (array.cast(pa.int64()) if pa.types.is_timestamp(array.type) else array).to_pylist()
            for array in batch.columns
        ]
        for values in zip(*columns, strict=True):
            row = dict(zip(names, values, strict=True))
            if UNFIT not in names:  # otherwise the fields of its record are columns
                raw, name = row.pop(BYTES), VALUE if VALUE in row else "slate"
                text = row[name]
                row[name] = raw if text is None else msgspec.json.decode(text)
            yield row


def read_log_rows(path: Path) -> Iterator[Row]:
    """Yields all rows that a sink's log still has, as they were published."""
    reader = LogReader(path)
    try:
        for block in reader.blocks(reader.start[0], reader.end[0]):
            yield from map(decode_row, block.lines)
    finally:
        reader.close()
