"""The body of a request becomes records: lines that are accepted, and refused ones with reasons.

A body is one JSON value, however it is laid out, one value a line (NDJSON), or lines of text, which
become records as the source says (`model.text_form`). An accepted line is one whole JSON value in
UTF-8 from which the source's key and time can be taken; so the application will be able to take it
in. A line is stored as it came; a single value is stored in one line, and a line of text as the
record that it became.

DESIGN
------
A large body is cut at line ends into pieces, so that whoever checks it can do something else
between two of them. The lines of a piece are decoded in one call and looked at column by column;
only a piece in which something is blank, unusual or wrong is gone through line by line. Both ways
accept the same lines.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import msgspec

from millstream.description import SourceDescription
from millstream.errors import InputError
from millstream.model.duration import TIME_LIMIT, UNITS
from millstream.model.text_form import TextForm, text_records
from millstream.nesting import too_deep

MANY: tuple[str, ...] = ("application/x-ndjson", "application/ndjson", "application/jsonl")
"""The Content-Types of one JSON value a line."""
PIECE_BYTES = 256 * 1024
PIECE_RECORDS = 2_000
"""Lines of text that are looked at between two others' requests."""
LINE_BYTES = 8 * 1024 * 1024
"""A longer line is refused: whoever reads the log must be able to hold many of them."""
SHOWN_CHARACTERS = 200
SHOWN_REFUSED = 100
"""How many refused lines an answer lists; it counts all of them."""
BOM = b"\xef\xbb\xbf"

_decode = msgspec.json.Decoder().decode


class Refused(msgspec.Struct, frozen=True):
    """A line that was not accepted."""

    line: int
    """Counted from 1, blank lines too."""
    error: str
    text: str
    """How the line begins."""


class Checked:
    """What a body holds: the accepted lines in order, and the refused ones."""

    __slots__ = ("lines", "refused", "refused_count")

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.refused: list[Refused] = []
        """The first of them."""
        self.refused_count = 0

    def refuse(self, line: int, text: bytes, error: Exception) -> None:
        self.refused_count += 1
        if len(self.refused) < SHOWN_REFUSED:
            self.refused.append(Refused(line, _reason(text, error), _shown(text)))


def pieces(body: bytes) -> Iterator[bytes]:
    """The body cut at line ends into pieces of about a quarter of a MiB; the ends are left out."""
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
    """Tells the records that a source can take from those that it cannot."""

    def __init__(self, source: SourceDescription) -> None:
        self._extract = source.source().extractor() if source.whole else None
        self._key, self._ts = source.key, source.ts
        self._plain = source.whole and _is_field(source.key) and _is_field(source.ts)
        self._texts = source.unit is None and source.time_format is None
        self._bound = 0 if source.unit is None else _bound(source.unit)
        self._ahead = source.ahead
        self._text = TextForm(source.pattern, source.starts)

    def one(self, body: bytes) -> Checked:
        """A body that is a single value, made into one line."""
        checked = Checked()
        try:
            line = msgspec.json.format(body.removeprefix(BOM), indent=-1)
            self._try(line)
            checked.lines.append(line)
        except Exception as error:
            checked.refuse(1, body, error)
        return checked

    def many(self, body: bytes) -> Iterator[Checked]:
        """A body of one value a line, checked a piece at a time; the last result holds all."""
        checked = Checked()
        first = 1
        for piece in pieces(body.removeprefix(BOM)):
            lines = piece.split(b"\n")
            self._take(lines, first, b"\r" in piece, checked)
            first += len(lines)
            yield checked

    def text(self, body: bytes) -> Iterator[Checked]:
        """A body of lines of text, checked some at a time; the last result holds all.

        A record of several lines must be whole in one body.
        """
        checked = Checked()
        for number, found in enumerate(text_records(body, self._text), 1):
            try:
                if found.error is not None:
                    raise found.error
                line = msgspec.json.encode(found.record)
                self._try(line)
                checked.lines.append(line)
            except Exception as error:
                checked.refuse(found.line, found.text, error)
            if number % PIECE_RECORDS == 0:
                yield checked
        yield checked

    def _take(self, lines: list[bytes], first: int, returns: bool, checked: Checked) -> None:
        if not lines[-1]:
            lines = lines[:-1]  # what follows the last line end
        if not self._all_good(lines):
            lines = self._good(lines, first, checked)
        if returns:  # in JSON they can only be blanks between its parts; no line must hold one
            lines = [line.replace(b"\r", b" ").rstrip() for line in lines]
        checked.lines += lines

    def _all_good(self, lines: list[bytes]) -> bool:
        """Whether these are all plain records that can be accepted, seen at a glance."""
        if not lines or max(map(len, lines)) > LINE_BYTES:
            return False
        try:
            records = list(map(_decode, lines))
            if any(map(too_deep, lines)):
                return False
            return self._extract is None or (self._plain and self._all_fit(records))
        except (ValueError, RecursionError, KeyError, TypeError, IndexError, InputError):
            return False

    def _all_fit(self, records: list[Any]) -> bool:
        """Whether key and time of all are of the kinds that the source takes, as most are."""
        key, ts = self._key, self._ts
        if key is not None and not {type(record[key]) for record in records} <= {str}:
            return False
        if ts is None:
            return True
        times = [record[ts] for record in records]
        kinds = set(map(type, times))
        if kinds == {str} and self._texts:
            list(map(datetime.fromisoformat, times))  # ValueError for what is not a time
            self._extract_of_latest(records, times)
            return True
        bound = self._bound
        if not (kinds <= {int, float} and -bound < min(times) and max(times) < bound):
            return False
        self._extract_of_latest(records, times)
        return True

    def _extract_of_latest(self, records: list[Any], times: list[Any]) -> None:
        """Raise if the latest of the times is too far ahead. (ISO 8601 is in order as text, but for
        zones and shorter forms: what this does not see, the application does.)"""
        if self._ahead is not None and self._extract is not None:
            self._extract(records[times.index(max(times))], self._now())

    def _good(self, lines: list[bytes], first: int, checked: Checked) -> list[bytes]:
        """The acceptable ones of the lines, looked at one by one; blank lines are nothing."""
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
        """Raise if the line cannot be accepted."""
        if len(line) > LINE_BYTES:
            raise InputError(f"a line must not be longer than {LINE_BYTES} bytes; got {len(line)}")
        record = _decode(line)
        if too_deep(line):
            raise RecursionError
        if self._extract is not None:
            self._extract(record, self._now())

    @staticmethod
    def _now() -> int:
        return time.time_ns() // 1_000


def _is_field(path: str | None) -> bool:
    """Whether a key or ts is left out or a field of the record itself."""
    return path is None or "." not in path


def _bound(unit: str) -> int:
    """Numbers below this are times for certain; half of the range, so as to need no rounding."""
    return TIME_LIMIT * 500 if unit == "ns" else TIME_LIMIT // (2 * UNITS[unit])


def _reason(line: bytes, error: Exception) -> str:
    if isinstance(error, InputError):
        return str(error)
    if isinstance(error, UnicodeDecodeError):
        found = "bytes that are not UTF-8"
    elif isinstance(error, RecursionError):
        found = "one that is nested too deeply"
    elif isinstance(error, msgspec.DecodeError) and "truncated" in str(error):
        found = "one that ends too early"
    else:
        found = f"this: {str(error)[:SHOWN_CHARACTERS]}"
    return f"a record must be one whole JSON value; got {found}"


def _shown(line: bytes) -> str:
    return line[: 4 * SHOWN_CHARACTERS].decode("utf-8", "replace")[:SHOWN_CHARACTERS]
