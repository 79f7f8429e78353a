"""Parses the body of a request into records: accepted lines, and refused lines with reasons.

A body is one JSON value in any layout, one value per line (NDJSON), or lines of text, which the
source's text form turns into records (`model.text_form`). A line is accepted if it is one whole
JSON value in UTF-8 from which the source's key and time can be extracted; so the application will
be able to process it. A line is stored as it came. A single value is stored in one line, and a line
of text as the record made from it.

DESIGN
------
A large body is cut at line ends into pieces, so that the caller can do other work between two of
them. The lines of a piece are decoded in one call and checked column by column. Only a piece with
blank, unusual or invalid lines is checked line by line. Both ways accept the same lines.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import msgspec

from millstream.description import SourceDescription
from millstream.errors import InputError
from millstream.json_depth import any_too_deep, too_deep
from millstream.messages.streams import RefusedLine
from millstream.model.duration import TIME_LIMIT, UNITS
from millstream.model.path import PLAIN_KEY
from millstream.model.text_form import TextForm, text_records
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

    __slots__ = ("lines", "refused", "refused_count")

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.refused: list[RefusedLine] = []
        """The first SHOWN_REFUSED refused lines."""
        self.refused_count = 0

    def refuse(self, line: int, text: bytes, error: Exception) -> None:
        self.refused_count += 1
        if len(self.refused) < SHOWN_REFUSED:
            self.refused.append(RefusedLine(line, _reason(text, error), _shown(text)))


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
        self._key, self._ts = source.key, source.ts
        self._plain = source.whole and _is_field(source.key) and _is_field(source.ts)
        self._texts = source.unit is None and source.time_format is None
        self._bound = 0 if source.unit is None else _bound(source.unit)
        self._ahead = source.ahead
        self._text = TextForm(source.pattern, source.starts)
        self._skim = skimmer(path for path in (source.key, source.ts) if self._extract and path)

    def one(self, body: bytes) -> CheckedBody:
        """Checks a body that is a single value, and stores it as one line."""
        checked = CheckedBody()
        try:
            line = in_one_line(body.removeprefix(BOM))
            self._try(line)
            checked.lines.append(line)
        except Exception as error:
            checked.refuse(1, body, error)
        return checked

    def many(self, body: bytes) -> Iterator[CheckedBody]:
        """Checks a body of one value per line, piece by piece; the last result holds all lines."""
        checked = CheckedBody()
        first = 1
        for piece in pieces(body.removeprefix(BOM)):
            lines = piece.split(b"\n")
            self._take(lines, first, b"\r" in piece, checked)
            first += len(lines)
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
                checked.lines.append(line)
            except Exception as error:
                checked.refuse(parsed.line, parsed.text, error)
            if number % PIECE_RECORDS == 0:
                yield checked
        yield checked

    def _take(self, lines: list[bytes], first: int, returns: bool, checked: CheckedBody) -> None:
        if not lines[-1]:
            lines = lines[:-1]  # the empty rest after the last line end
        if not self._all_good(lines):
            lines = self._good(lines, first, checked)
        if returns:  # in JSON a \r can only be white space between tokens; no line may contain one
            lines = [line.replace(b"\r", b" ").rstrip() for line in lines]
        checked.lines += lines

    def _all_good(self, lines: list[bytes]) -> bool:
        """True if a quick check finds that all lines are plain records that can be accepted."""
        if not lines or max(map(len, lines)) > LARGE_BYTES:
            return False
        try:
            records = list(map(_decode, lines))
            if any_too_deep(lines):
                return False
            return self._extract is None or (self._plain and self._all_fit(records))
        except (ValueError, RecursionError, KeyError, TypeError, IndexError, InputError):
            return False

    def _all_fit(self, records: list[Any]) -> bool:
        """True if the keys and times of all records have the usual types that the source takes."""
        key, ts = self._key, self._ts
        if key is not None and not all(
            type(value) is str and len(value) <= PLAIN_KEY
            for value in [record[key] for record in records]
        ):
            return False
        if ts is None:
            return True
        times = [record[ts] for record in records]
        kinds = set(map(type, times))
        if kinds == {str} and self._texts:
            list(map(datetime.fromisoformat, times))  # raises ValueError for an invalid time
            self._extract_of_latest(records, times)
            return True
        bound = self._bound
        if not (kinds <= {int, float} and -bound < min(times) and max(times) < bound):
            return False
        self._extract_of_latest(records, times)
        return True

    def _extract_of_latest(self, records: list[Any], times: list[Any]) -> None:
        """Raises if the latest of the times is too far ahead.

        ISO 8601 times are compared as text, which ignores zones and shorter forms. The application
        finds the times that this check misses.
        """
        if self._ahead is not None and self._extract is not None:
            self._extract(records[times.index(max(times))], self._now())

    def _good(self, lines: list[bytes], first: int, checked: CheckedBody) -> list[bytes]:
        """Checks the lines one by one, returns the acceptable ones; blank lines are skipped."""
        good = []
        for number, line in enumerate(lines, first):
            if not line or line.isspace():
                continue
            try:
                self._try(line)
            except Exception as error:  # a strange record can make the source fail in any way
                checked.refuse(number, line, error)
            else:
                good.append(line)
        return good

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


def _is_field(path: str | None) -> bool:
    """True if a key or ts is left out, or is a top-level field of the record."""
    return path is None or "." not in path


def _bound(unit: str) -> int:
    """Returns a bound below which numbers surely are valid times: half of the range, so that
    rounding does not matter."""
    return TIME_LIMIT * 500 if unit == "ns" else TIME_LIMIT // (2 * UNITS[unit])


def _reason(line: bytes, error: Exception) -> str:
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
