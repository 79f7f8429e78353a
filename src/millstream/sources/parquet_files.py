"""Parquet files, in row groups, with values that JSON can carry (see `arrow_rows`).

A value that JSON cannot carry makes only its own row bad. A file that cannot be opened is bad as a
whole. If a file is corrupt further on, the rows from that point to the end of the split are bad.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from millstream.model.letter_records import Bad, beginning
from millstream.sources.arrow_rows import rows_of
from millstream.sources.formats import (
    CHUNK_RECORDS,
    Chunk,
    InputSplit,
    cut_evenly,
    given_up,
    shrunk,
    unreadable,
)


class ParquetFiles:
    """The Parquet format, in units of row groups. An unreadable file has one unit: the error."""

    name = "parquet"
    look_back = 1

    def units(self, path: str, size: int) -> int:
        with pa.OSFile(path) as source:
            try:
                return max(1, int(pq.ParquetFile(source).num_row_groups))
            except (pa.ArrowException, OSError):
                return 1

    def splits(
        self, path: str, size: int, units: int, start: int, stop: int, target_bytes: int
    ) -> list[InputSplit]:
        parts = -(-size * (stop - start) // (units * max(1, target_bytes)))
        cuts = cut_evenly(start, stop, parts)
        # The last split reads to the end: a file that was half-written at first had one unit then.
        return [InputSplit(path, low, None if high == units else high) for low, high in cuts]

    def read(self, split: InputSplit) -> Iterator[Chunk]:
        try:
            source = pa.OSFile(split.path)
        except OSError as error:
            raise unreadable(split.path, error) from None
        with source:
            if source.size() == 0:
                yield Chunk([], None, [given_up("its row groups")], None)
                return
            try:
                file = pq.ParquetFile(source)
            except (pa.ArrowException, OSError) as error:
                yield Chunk([], None, [_broken(error)], None)
                return
            groups = file.num_row_groups
            if split.start > groups or (split.stop or 0) > groups:
                taken = f"at least {split.stop or split.start} row groups"
                raise shrunk(split.path, taken, f"{groups} row groups")
            yield from _chunks(file, split.start, groups if split.stop is None else split.stop)


def _broken(error: Exception) -> Bad:
    return Bad(
        0,
        "",
        f"the file must be whole Parquet; it is cut short or corrupt ({str(error)[:200]}), and "
        "nothing of it was read: write it whole elsewhere, then rename it into the directory under "
        "a new name",
    )


def _broken_rows(error: Exception, first: int, last: int) -> Bad:
    """Returns the `Bad` of unreadable rows; the rows around them are read, and must not be written
    again."""
    return Bad(
        0,
        "",
        f"the file must be whole Parquet; it is corrupt ({str(error)[:200]}), and its rows {first} "
        f"to {last} are not read, but the others are: write only these rows to a file elsewhere, "
        "then rename that file into the directory under a new name",
    )


def _chunks(file: Any, start: int, stop: int) -> Iterator[Chunk]:
    names: list[str] = file.schema_arrow.names
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        wrong = f"a column's name must be unique; got twice: {', '.join(sorted(twice))}"
        yield Chunk([], None, [Bad(0, "", f"{wrong}; rename one and write the file again")], None)
        return
    rows = [file.metadata.row_group(group).num_rows for group in range(stop)]
    before, first = sum(rows[:start]), 0
    batches = file.iter_batches(
        CHUNK_RECORDS, row_groups=list(range(start, stop)), use_threads=False
    )
    while True:
        try:
            batch = next(batches, None)
        except (pa.ArrowException, OSError) as error:
            broken = _broken_rows(error, before + first + 1, sum(rows))
            yield Chunk([], None, [broken], None)
            return
        if batch is None:
            return
        yield _chunk(batch, first, before)
        first += batch.num_rows


def _chunk(batch: Any, first: int, before: int) -> Chunk:
    rows = rows_of(batch)
    numbers = None if rows.numbers is None else [first + number for number in rows.numbers]
    bad = [Bad(before + first + row + 1, beginning(text), error) for row, text, error in rows.bad]
    return Chunk(rows.records, None, bad, numbers, first, lambda: before)
