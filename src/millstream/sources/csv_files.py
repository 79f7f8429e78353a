"""CSV files: a header row, then one record a row, every value as text.

Fields may be quoted and may contain newlines (RFC 4180). So a file cannot be cut: it is read from
start to end, row by row. A row that does not have as many fields as the header is bad.

*Quotes.* When the quotes of a row do not match, only the line on which the wrong quote opens is
bad, together with the lines of its row before it, and reading continues with the next line.
Otherwise a quote that is never closed would swallow all rows after it, and one that meets the
opening quote of a later row would swallow every row between them. A line that is read after a bad
one counts as a row if it has the header's number of fields; nothing more is known of it. If the
quote was right and the file is cut short inside a long field, lines of that field may have that
number too; the bad line before them says where to look.

Compressed files (`.gz`) are read too.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from typing import NamedTuple

from millstream.model.letter_records import Bad, bad_record
from millstream.model.path import is_unicode
from millstream.model.text_form import TextForm
from millstream.sources import line_blocks
from millstream.sources.formats import CHUNK_RECORDS, Chunk, InputSplit, opened
from millstream.sources.whole_files import unchanged, whole_file

_NEVER = "is never closed"


class CsvFiles:
    """The CSV format; a file is one unit."""

    name = "csv"
    look_back = 1

    def __init__(self, form: TextForm) -> None:
        self._form = form

    def units(self, path: str, size: int) -> int:
        return 1

    def splits(
        self, path: str, size: int, units: int, start: int, stop: int, target_bytes: int
    ) -> list[InputSplit]:
        return [InputSplit(path, 0, None)]

    def read(self, split: InputSplit) -> Iterator[Chunk]:
        with opened(split.path) as file:
            whole = whole_file(file, split.path, self._form)
            if isinstance(whole, Bad):
                yield Chunk([], None, [whole], None)
                return
            with unchanged(split.path):
                yield from _chunks(CsvRows(whole.readline, self._form))


class CsvRow(NamedTuple):
    """A row; `wrong` says what is wrong with a bad one."""

    line: int
    """Its first line, counted from 0."""
    last: int
    """The line after its last one."""
    fields: list[str]
    wrong: str | None
    text: str


class _CsvLines:
    """The lines of a file as text. Lines of the current row can be pushed back."""

    def __init__(self, readline: Callable[[int], bytes], encoding: str) -> None:
        self._readline, self._encoding = readline, encoding
        self._again: list[str] = []
        """Lines that were pushed back, the next one last."""
        self.number = 0
        """The number of lines before the next one."""
        self.row: list[str] = []
        """The lines of the row that is being read."""

    def __iter__(self) -> _CsvLines:
        return self

    def __next__(self) -> str:
        text = self._again.pop() if self._again else self._next()
        self.row.append(text)
        self.number += 1
        return text

    def _next(self) -> str:
        line = self._readline(line_blocks.LINE_BYTES)
        if not line:
            raise StopIteration
        if not self.number:
            line = line.removeprefix(line_blocks.BOM)
        # Invalid bytes are kept as they are, so that they make only their own row bad.
        return line.decode(self._encoding, "surrogateescape")

    def push_back(self, count: int) -> None:
        """Pushes the last lines of the row back, to be read again next."""
        for _ in range(count):
            self._again.append(self.row.pop())
        self.number -= count


class CsvRows:
    """The rows of a file, good and bad; blank lines are skipped."""

    def __init__(self, readline: Callable[[int], bytes], form: TextForm) -> None:
        # The limit is per process; the default of 128 KiB would refuse fields that JSON allows.
        csv.field_size_limit(max(csv.field_size_limit(), line_blocks.LINE_BYTES))
        self._form = form
        self._lines = _CsvLines(readline, form.line_encoding)
        self._rows = csv.reader(self._lines, strict=True, delimiter=form.delimiter)

    def __iter__(self) -> Iterator[CsvRow]:
        lines = self._lines
        while True:
            first, fields, wrong = lines.number, list[str](), None
            lines.row.clear()
            try:
                fields = next(self._rows)
            except StopIteration:
                return
            except csv.Error as error:
                wrong = self._mismatch(first, error)
            text = "".join(lines.row)
            if not is_unicode(text):
                wrong = (
                    f"bytes that are not {self._form.encoding.upper()}; if the file is written in "
                    "another encoding, say so, as with encoding='latin-1'"
                )
            if wrong is not None or fields:
                yield CsvRow(first, lines.number, fields, wrong, text)

    def _mismatch(self, first: int, error: csv.Error) -> str:
        """Describes the wrong quote of a row, and pushes the lines after it back."""
        if "new-line character" in str(error):
            return "a carriage return within a line; end lines with a newline"
        text = "".join(self._lines.row)
        opened = quote_of(text, self._form.delimiter)
        line = text.count("\n", 0, opened)
        column = opened - (text.rfind("\n", 0, opened) + 1)
        never = "unexpected end of data" in str(error)
        reason = _NEVER if never else f"is not closed as it must be ({error})"
        after = len(self._lines.row) - (line + 1)
        self._lines.push_back(after)
        wrong = f"a quote that {reason}: it opens in line {first + line + 1}, column {column + 1}"
        return f"{wrong}; what follows is read from line {first + line + 2} on" if after else wrong


def quote_of(text: str, delimiter: str) -> int:
    """Returns the index of the quote that makes a row bad: the last one that opens a field.

    >>> quote_of('a,"b",c,"d', ",")
    8
    """
    at = opened = 0
    while at < len(text):
        if text[at] != '"':
            ends = (text.find(delimiter, at), text.find("\n", at))
            at = min((end for end in ends if end >= 0), default=len(text)) + 1
            continue
        opened, at = at, at + 1
        while (at := text.find('"', at)) >= 0 and text[at + 1 : at + 2] == '"':
            at += 2
        if at < 0 or text[at + 1 : at + 2] not in (delimiter, "\r", "\n", ""):
            return opened
        at += 2
    return opened


def _chunks(rows: CsvRows) -> Iterator[Chunk]:
    header: list[str] | None = None
    chunk = Chunk([], None, [], [])
    for row in rows:
        wrong = row.wrong
        if wrong is None and header is not None and len(row.fields) != len(header):
            fields = "field" if len(row.fields) == 1 else "fields"
            wrong = f"{len(row.fields)} {fields}, and the header has {len(header)}"
        if wrong is None and header is None and len(set(row.fields)) < len(row.fields):
            twice = next(name for name in row.fields if row.fields.count(name) > 1)
            wrong = f"the name {twice!r} twice in the header; rename one of them"
        if wrong is not None:
            chunk.bad.append(_bad(wrong, row, header is None))
            if header is None:
                break
        elif header is None:
            header = row.fields
        else:
            chunk.records.append(dict(zip(header, row.fields, strict=True)))
            assert chunk.lines is not None
            chunk.lines.append(row.line)
        if len(chunk.records) + len(chunk.bad) >= CHUNK_RECORDS:
            yield chunk
            chunk = Chunk([], None, [], [])
    if chunk.records or chunk.bad:
        yield chunk


def _bad(wrong: str, row: CsvRow, header: bool) -> Bad:
    lines = f" (lines {row.line + 1} to {row.last})" if row.last > row.line + 1 else ""
    subject = "the header, and with it the file," if header else "a row"
    must = "must be CSV with as many fields as the header"
    text = row.text.encode("utf-8", "surrogateescape")
    return bad_record(row.line + 1, text, f"{subject} {must}; got {wrong}{lines}", "row")
