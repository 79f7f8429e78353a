"""Files of slates, as `millstream slates dump` writes them: JSON lines or Parquet.

A row is a slate's key, the slate, and the ts of its last update. In Parquet the slate is JSON text,
since slates of one update need not look alike. Memory is bounded: a chunk of rows at a time.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec

SlateRow = tuple[str, Any, int]
"""(key, slate, ts); a table is a dict of its entries."""
SUFFIXES = {"jsonl": ".jsonl", "parquet": ".parquet"}
ROWS = 10_000
"""Rows of a Parquet file that are gathered before they are written."""
CHUNK_BYTES = 16 * 1024 * 1024
"""Or this much text of slates."""


def write_slates(form: str, file: Path, rows: Iterable[SlateRow]) -> int:
    """Write rows to a new file, on disk when this returns; how many there were."""
    return _WRITERS[form](file, rows)


def _write_lines(file: Path, rows: Iterable[SlateRow]) -> int:
    encode, count = msgspec.json.Encoder().encode, 0
    with file.open("wb") as out:
        for key, slate, ts in rows:
            out.write(encode({"key": key, "slate": slate, "ts": ts}) + b"\n")
            count += 1
        out.flush()
        os.fsync(out.fileno())
    return count


def _write_parquet(file: Path, rows: Iterable[SlateRow]) -> int:
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema(
        [("key", pa.string()), ("slate", pa.string()), ("ts", pa.timestamp("us", tz="UTC"))]
    )
    encode, count = msgspec.json.Encoder().encode, 0
    with file.open("wb") as out:
        with pq.ParquetWriter(out, schema, compression="zstd") as writer:
            chunk: list[tuple[str, str, int]] = []
            size = 0

            def flush() -> None:
                columns = list(zip(*chunk, strict=True)) or [(), (), ()]
                arrays = [pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)]
                writer.write_table(pa.Table.from_arrays(arrays, schema=schema))

            for key, slate, ts in rows:
                text = encode(slate).decode()
                chunk.append((key, text, ts))
                size += len(text)
                if len(chunk) >= ROWS or size >= CHUNK_BYTES:
                    flush()
                    count, size = count + len(chunk), 0
                    chunk.clear()
            if chunk:
                flush()
                count += len(chunk)
        out.flush()
        os.fsync(out.fileno())
    return count


_WRITERS: dict[str, Callable[[Path, Iterable[SlateRow]], int]] = {
    "jsonl": _write_lines,
    "parquet": _write_parquet,
}
