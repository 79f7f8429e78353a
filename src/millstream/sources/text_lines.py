"""Lines of text: one line per record, or several (see `model.line_records`).

A split owns the records that *begin* in it. Lines before the first of these belong to a record of
an earlier split, and the last record is read past the split's end, until the next record begins. So
a file can be cut anywhere. Compressed files (`.gz`) and files in UTF-16 are one split.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import IO

from millstream.errors import InputError
from millstream.model.letter_records import Bad, bad_record
from millstream.model.line_records import JoinedLines, LineJoiner, line_reader
from millstream.model.text_form import TextForm
from millstream.sources import line_blocks
from millstream.sources.formats import (
    CHUNK_RECORDS,
    Chunk,
    InputSplit,
    is_gzip,
    line_splits,
    opened,
)
from millstream.sources.line_blocks import LinesBefore, blocks, first_line
from millstream.sources.whole_files import unchanged, unfit, whole_file


class TextLines:
    """The text format, in units of bytes; a compressed file or one in UTF-16 is one unit."""

    name = "text"
    look_back = 1 << 16
    splits = staticmethod(line_splits)

    def __init__(self, form: TextForm) -> None:
        self._form = form
        self._record_of = line_reader(form.pattern, encoding=form.line_encoding)

    def units(self, path: str, size: int) -> int:
        return 1 if is_gzip(path) or self._form.is_wide else max(1, size)

    def read(self, split: InputSplit) -> Iterator[Chunk]:
        with opened(split.path, buffering=0) as file:
            if split.start == 0 and split.stop is None:
                whole = whole_file(file, split.path, self._form)
                if isinstance(whole, Bad):
                    yield Chunk([], None, [whole], None)
                    return
                with unchanged(split.path):
                    records = self._records(_lines(blocks(whole.read, 0, None), first=True), False)
                    yield from self._chunks(records, LinesBefore("", 0))
                return
            wrong = unfit(file, split, self._form)
            if wrong is not None:
                yield Chunk([], None, wrong, None)
                return
            begin = first_line(file, split.start, split.stop)
            if begin is not None:
                file.seek(begin)
                records = self._records(self._lines_of(file, begin, split.stop), begin > 0)
                yield from self._chunks(records, LinesBefore(split.path, begin))

    def _lines_of(self, file: IO[bytes], begin: int, stop: int | None) -> Iterator[list[bytes]]:
        """Yields the lines that begin before `stop`, and those after it that continue a record."""
        yield from _lines(blocks(file.read, begin, stop), first=begin == 0)
        if stop is None or self._form.starts is None:
            return
        after = first_line(file, stop, None)
        if after is None:
            return
        file.seek(after)
        begins = LineJoiner(self._form.starts, encoding=self._form.line_encoding).begins
        for lines in _lines(blocks(file.read, after, None), first=False):
            for number, line in enumerate(lines):
                if begins(line):
                    yield lines[:number]
                    return
            yield lines

    def _records(
        self, lines: Iterable[list[bytes]], inside: bool
    ) -> Iterator[list[tuple[int, bytes]]]:
        """Yields the joined lines of each record, with the number of its first line, several at a
        time."""
        if self._form.starts is None:
            first = 0
            for block in lines:
                yield list(enumerate(block, first))
                first += len(block)
            return
        joiner = LineJoiner(
            self._form.starts,
            inside=inside,
            encoding=self._form.line_encoding,
            longest=line_blocks.LINE_BYTES,
        )
        for block in lines:
            yield [_numbered(record) for record in joiner.take(block)]
        last = joiner.end()
        if last is not None:
            yield [_numbered(last)]

    def _chunks(
        self, records: Iterable[list[tuple[int, bytes]]], before: LinesBefore
    ) -> Iterator[Chunk]:
        for block in records:
            for low in range(0, len(block), CHUNK_RECORDS):
                yield self._chunk(block[low : low + CHUNK_RECORDS], before)

    def _chunk(self, lines: list[tuple[int, bytes]], before: LinesBefore) -> Chunk:
        chunk = Chunk([], None, [], [], before=before)
        assert chunk.lines is not None
        for number, line in lines:
            try:
                if len(line) > line_blocks.LINE_BYTES:
                    raise InputError(
                        f"a record must have at most {line_blocks.LINE_BYTES} bytes; it is longer"
                    )
                if not line.strip(b"\r\n"):
                    continue
                record = self._record_of(line)
            except InputError as error:
                chunk.bad.append(bad_record(before() + number + 1, line, str(error), "line"))
            else:
                chunk.records.append(record)
                chunk.lines.append(number)
        return chunk


def _numbered(record: JoinedLines) -> tuple[int, bytes]:
    return record.line, record.data


def _lines(blocks: Iterator[bytes], *, first: bool) -> Iterator[list[bytes]]:
    """Splits blocks into lines; `first` means that they begin at the start of the file."""
    for block in blocks:
        yield (block.removeprefix(line_blocks.BOM) if first else block).split(b"\n")
        first = False
