"""CSV files: a header row, then one record a row, every value as text.

Fields may be quoted and may hold newlines (RFC 4180), which is why a file cannot be cut and is
read whole, row by row. A row must have as many fields as the header; one that does not, or whose
quotes do not match, is bad. A quote that is never closed swallows what follows: the error says from
which line to which. Compressed files (`.gz`) are read too.
"""

from __future__ import annotations

import csv
import gzip
import zlib
from collections.abc import Callable, Iterator

from millstream.sources.formats import (
    CHUNK_RECORDS,
    Bad,
    Chunk,
    Split,
    given_up,
    is_gzip,
    shown,
    unreadable,
)
from millstream.sources.json_lines import BOM, LINE_BYTES, broken_gzip


class CsvFiles:
    """CSV, a file at a time."""

    name = "csv"

    def units(self, path: str, size: int) -> int:
        return 1

    def splits(
        self, path: str, size: int, units: int, start: int, stop: int, target_bytes: int
    ) -> list[Split]:
        return [Split(path, 0, None)]

    def read(self, split: Split) -> Iterator[Chunk]:
        try:
            file = open(split.path, "rb")  # noqa: SIM115  # its errors are told from the reader's
        except OSError as error:
            raise unreadable(split.path, error) from None
        with file:
            if not file.peek(1):
                yield Chunk([], None, [given_up("its events")], None)
            elif is_gzip(split.path):
                try:
                    with gzip.open(file) as unpacked:
                        yield from _chunks(unpacked.readline)
                except (EOFError, OSError, zlib.error) as error:
                    yield Chunk([], None, [broken_gzip(error)], None)
            else:
                yield from _chunks(file.readline)


class _Text:
    """The lines of a file as text, remembering those of the row that is being read."""

    def __init__(self, readline: Callable[[int], bytes]) -> None:
        self._readline = readline
        self.row: list[str] = []
        self.invalid = False
        """Whether the row holds bytes that are not UTF-8."""

    def __iter__(self) -> Iterator[str]:
        line = self._readline(LINE_BYTES).removeprefix(BOM)
        while line:
            try:
                text = line.decode()
            except UnicodeDecodeError:
                text = line.decode("utf-8", "replace")
                self.invalid = True
            self.row.append(text)
            yield text
            line = self._readline(LINE_BYTES)


def _chunks(readline: Callable[[int], bytes]) -> Iterator[Chunk]:
    # The limit is the process's; the default of 128 KiB would refuse fields that JSON may have.
    csv.field_size_limit(max(csv.field_size_limit(), LINE_BYTES))
    text = _Text(readline)
    rows = csv.reader(text, strict=True)
    header: list[str] | None = None
    chunk = Chunk([], None, [], [])
    line = 0
    while True:
        wrong = None
        row: list[str] = []
        try:
            row = next(rows)
        except StopIteration:
            break
        except csv.Error as error:
            wrong = _reason(error)
        if text.invalid:
            wrong = "bytes that are not UTF-8; write the file as UTF-8"
        if wrong is None and header is not None and row and len(row) != len(header):
            fields = "field" if len(row) == 1 else "fields"
            wrong = f"{len(row)} {fields}, and the header has {len(header)}"
        if wrong is None and header is None and len(set(row)) < len(row):
            twice = next(name for name in row if row.count(name) > 1)
            wrong = f"the name {twice!r} twice in the header; rename one of them"
        if wrong is not None:
            chunk.bad.append(_bad(wrong, line, rows.line_num, text, header is None))
            if header is None:
                break
        elif row:  # a blank line is no row
            if header is None:
                header = row
            else:
                chunk.records.append(dict(zip(header, row, strict=True)))
                assert chunk.lines is not None
                chunk.lines.append(line)
        text.row.clear()
        text.invalid = False
        line = rows.line_num
        if len(chunk.records) >= CHUNK_RECORDS:
            yield chunk
            chunk = Chunk([], None, [], [])
    if chunk.records or chunk.bad:
        yield chunk


def _reason(error: csv.Error) -> str:
    if "unexpected end of data" in str(error):
        return "a quoted field that is never closed"
    return f"this: {error}"


def _bad(wrong: str, line: int, last: int, text: _Text, header: bool) -> Bad:
    lines = f" (lines {line + 1} to {last})" if last > line + 1 else ""
    what = "the header, and with it the file," if header else "a row"
    must = "must be CSV with as many fields as the header"
    return Bad(line + 1, shown("".join(text.row)), f"{what} {must}; got {wrong}{lines}")
