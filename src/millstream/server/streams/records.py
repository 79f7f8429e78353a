"""Parses the body of a request into records: accepted lines, and refused lines with reasons.

A body is one JSON value in any layout, one value per line (NDJSON), or lines of text, which the
source's text form turns into records (`model.text_form`). A line is accepted if it is one whole
JSON value in UTF-8 from which the source's key and time can be extracted; so the application will
be able to process it. A line is stored as it came. A single value is stored in one line, and a line
of text as the record made from it.

DESIGN
------
A large body is cut at line ends into pieces, so that the caller can do other work between two of
them. The lines of a piece are checked together, and stay one piece of bytes (`block_check`). Only a
piece with blank, unusual or invalid lines is checked line by line. Both ways accept the same lines.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import msgspec

from millstream.description import SourceDescription
from millstream.errors import InputError
from millstream.json_checks.json_depth import too_deep
from millstream.messages.streams import RefusedLine
from millstream.model.text_form import TextForm, text_records
from millstream.server.streams.block_check import BlockCheck
from millstream.server.streams.large_records import LARGE_BYTES, LINE_BYTES, in_one_line, skimmer

MANY: tuple[str, ...] = ("application/x-ndjson", "application/ndjson", "application/jsonl")
"""The Content-Types of one JSON value per line."""
PIECE_BYTES = 256 * 1024
PIECE_RECORDS = 2_000
"""Records of text that are checked before other requests get a turn."""
SHOWN_CHARACTERS = 200
SHOWN_REFUSED = 100
"""The most refused lines that an answer lists; it counts all of them."""
BOM = b"\xef\xbb\xbf"

_decode = msgspec.json.Decoder().decode


class CheckedBody:
    """The content of a body: the accepted lines in order, and the refused ones."""

    __slots__ = ("count", "parts", "refused", "refused_count")

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        """The accepted lines; those of a part are joined by newlines."""
        self.count = 0
        """The number of accepted lines."""
        self.refused: list[RefusedLine] = []
        """The first SHOWN_REFUSED refused lines."""
        self.refused_count = 0

    @property
    def payload(self) -> bytes:
        """The accepted lines, joined by newlines."""
        return self.parts[0] if len(self.parts) == 1 else b"\n".join(self.parts)

    def accept(self, lines: bytes, count: int = 1) -> None:
        """Adds accepted lines, joined by newlines."""
        self.parts.append(lines)
        self.count += count

    def refuse(self, line: int, text: bytes, error: Exception) -> None:
        self.refused_count += 1
        if len(self.refused) < SHOWN_REFUSED:
            self.refused.append(RefusedLine(line, _reason(error), _shown(text)))


def pieces(body: bytes) -> Iterator[bytes]:
    """Cuts a body at line ends into pieces of about a quarter of a MiB, without those line ends."""
    at = 0
    while len(body) - at > PIECE_BYTES:
        cut = body.rfind(b"\n", at, at + PIECE_BYTES)
        if cut < 0:
            cut = body.find(b"\n", at + PIECE_BYTES)
        if cut < 0:
            break
        yield body[at:cut]
        at = cut + 1
    yield body[at:]


class RecordCheck:
    """Checks which records a source can accept."""

    def __init__(self, source: SourceDescription) -> None:
        self._extract = source.source().extractor() if source.whole else None
        self._block = BlockCheck(source)
        self._text = TextForm(source.pattern, source.starts)
        self._skim = skimmer(path for path in (source.key, source.ts) if self._extract and path)

    def one(self, body: bytes) -> CheckedBody:
        """Checks a body that is a single value, and stores it as one line."""
        checked = CheckedBody()
        try:
            line = in_one_line(body.removeprefix(BOM))
            self._try(line)
            checked.accept(line)
        except Exception as error:
            checked.refuse(1, body, error)
        return checked

    def many(self, body: bytes) -> Iterator[CheckedBody]:
        """Checks a body of one value per line, piece by piece; the last result holds all lines."""
        checked = CheckedBody()
        first = 1
        for piece in pieces(body.removeprefix(BOM)):
            first += self._take(piece, first, checked)
            yield checked

    def text(self, body: bytes) -> Iterator[CheckedBody]:
        """Checks a body of lines of text, some at a time; the last result holds all records.

        A record of several lines must not be split over two bodies.
        """
        checked = CheckedBody()
        for number, parsed in enumerate(text_records(body, self._text), 1):
            try:
                if parsed.error is not None:
                    raise parsed.error
                line = msgspec.json.encode(parsed.record)
                self._try(line)
                checked.accept(line)
            except Exception as error:
                checked.refuse(parsed.line, parsed.text, error)
            if number % PIECE_RECORDS == 0:
                yield checked
        yield checked

    def _take(self, piece: bytes, first: int, checked: CheckedBody) -> int:
        """Adds the lines of a piece, the first of which has this number; returns how many it has
        before its last newline and after it."""
        if len(piece) <= PIECE_BYTES:
            block = piece.removesuffix(b"\n")
            if b"\r" in block:
                block = block.replace(b"\r\n", b"\n").removesuffix(b"\r")
            count = 0 if b"\r" in block else self._block.count(block)
            if count:
                checked.accept(block, count)
                return count + piece.endswith(b"\n")
        lines = piece.split(b"\n")
        for number, line in enumerate(lines, first):
            if not line or line.isspace():
                continue
            try:
                self._try(line)
            except Exception as error:  # a strange record can make the source fail in any way
                checked.refuse(number, line, error)
            else:
                # In JSON a \r can only be white space between tokens; no line may contain one.
                checked.accept(line.replace(b"\r", b" ").rstrip() if b"\r" in line else line)
        return len(lines)

    def _try(self, line: bytes) -> None:
        """Raises if the line cannot be accepted."""
        if len(line) > LINE_BYTES:
            raise InputError(f"a line must not be longer than {LINE_BYTES} bytes; got {len(line)}")
        record = self._skim(line) if len(line) > LARGE_BYTES else _decode(line)
        if too_deep(line):
            raise RecursionError
        if self._extract is not None:
            self._extract(record, self._now())

    @staticmethod
    def _now() -> int:
        return time.time_ns() // 1_000


def _reason(error: Exception) -> str:
    if isinstance(error, InputError):
        return str(error)
    if isinstance(error, UnicodeDecodeError):
        problem = "bytes that are not UTF-8"
    elif isinstance(error, RecursionError):
        problem = "one that is nested too deeply"
    elif isinstance(error, msgspec.DecodeError) and "truncated" in str(error):
        problem = "one that ends too early"
    else:
        problem = f"this: {str(error)[:SHOWN_CHARACTERS]}"
    return f"a record must be one whole JSON value; got {problem}"


def _shown(line: bytes) -> str:
    return line[: 4 * SHOWN_CHARACTERS].decode("utf-8", "replace")[:SHOWN_CHARACTERS]
