"""Files of slates, as `millstream slates dump` writes them: JSON lines or Parquet.

A row has a slate's key, the slate, and the ts of its last update. In Parquet the slates of a
dataclass have a column for each field (`parquet_columns`); other slates are JSON text, since their
fields may differ. Memory is bounded: rows are written a chunk at a time.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from millstream.column_types import ColumnType
from millstream.sinks.parquet_columns import RecordColumns, taken_name

SlateRow = tuple[str, Any, int]
"""(key, slate, ts); a table is a dict of its entries."""
SUFFIXES = {"jsonl": ".jsonl", "parquet": ".parquet"}
ROWS = 10_000
"""The maximum number of rows of a chunk of a Parquet file."""
CHUNK_BYTES = 16 * 1024 * 1024
"""The size of slates, as text, at which a chunk is written."""


def slate_record(record: ColumnType | None) -> ColumnType | None:
    """Returns the record for the columns of slates; None if a field has the name of another
    column."""
    return None if record is None or taken_name(record, ("key", "ts")) else record


def write_slates(
    form: str, file: Path, rows: Iterable[SlateRow], record: ColumnType | None = None
) -> int:
    """Writes rows to a new file, on disk when this returns; returns their number. `record` is the
    type of the slates, for columns of Parquet."""
    if form == "parquet":
        return _write_parquet(file, rows, record)
    return _write_lines(file, rows)


def _write_lines(file: Path, rows: Iterable[SlateRow]) -> int:
    encode, count = msgspec.json.Encoder().encode, 0
    with file.open("wb") as out:
        for key, slate, ts in rows:
            out.write(encode({"key": key, "slate": slate, "ts": ts}) + b"\n")
            count += 1
        out.flush()
        os.fsync(out.fileno())
    return count


def _write_parquet(file: Path, rows: Iterable[SlateRow], record: ColumnType | None) -> int:
    import pyarrow as pa
    import pyarrow.parquet as pq

    slates = TextColumn() if record is None else RecordColumns(record)
    keys: list[str] = []
    ts: list[int] = []

    def chunk() -> Any:
        """Returns the gathered rows as a table, and starts again with none."""
        arrays = {"key": pa.array(keys, pa.string()), **slates.take()}
        arrays["ts"] = pa.array(ts, pa.timestamp("us", tz="UTC"))
        keys.clear()
        ts.clear()
        return pa.table(arrays)

    count, size, schema = 0, 0, chunk().schema
    with file.open("wb") as out:
        with pq.ParquetWriter(out, schema, compression="zstd") as writer:
            for key, slate, last in rows:
                keys.append(key)
                size += slates.add(slate)
                ts.append(last)
                count += 1
                if len(keys) >= ROWS or size >= CHUNK_BYTES:
                    writer.write_table(chunk())
                    size = 0
            if keys:
                writer.write_table(chunk())
        out.flush()
        os.fsync(out.fileno())
    return count


class TextColumn:
    """Gathers slates as one column of JSON text."""

    def __init__(self) -> None:
        self._texts: list[bytes] = []
        self._encode = msgspec.json.Encoder().encode

    def add(self, slate: Any) -> int:
        """Appends a slate; returns the size of its text."""
        text = self._encode(slate)
        self._texts.append(text)
        return len(text)

    def take(self) -> dict[str, Any]:
        """Returns the gathered column, and starts again with none."""
        import pyarrow as pa

        texts, self._texts = self._texts, []
        return {"slate": pa.array(texts, pa.binary()).cast(pa.string())}
