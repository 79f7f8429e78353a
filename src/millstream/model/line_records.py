"""Records from lines of text: one implementation for sources, posted text and agents.

*One line.* Without a pattern the record is `{"line": TEXT}`; with one, a regular expression that
must match from the start of the line, it is the pattern's named groups. A carriage return at the
end of a line is not part of the line.

*Many lines.* A record may span several lines, as a stack trace does. `starts` is a regular
expression that matches the first line of each record; a line that it does not match belongs to the
record before it. `LineJoiner` joins them. The line alone decides if it begins a record, and the
first line of a file always begins one. So wherever a file is cut into pieces, every record belongs
to the piece in which it begins.

*Arrays.* A file of JSON is one array if it begins with `[` and then `{`, unless its first line is a
complete value and others follow. Otherwise each line is a value, which may be an array too.

>>> read = line_reader(pattern=r"(?P<host>\\S+) (?P<status>\\d+)")
>>> read(b"web1 200")
{'host': 'web1', 'status': '200'}
"""

from __future__ import annotations

import json
import re
from codecs import BOM_UTF8
from collections.abc import Callable, Iterable
from typing import NamedTuple

from millstream.errors import DefinitionError, InputError

LONGEST = 64 * 1024 * 1024
"""The most bytes of a record of several lines; what exceeds them is not kept."""
BLOCK_BYTES = 256 * 1024
LineReader = Callable[[bytes], dict[str, str | None]]
_ARRAY = re.compile(rb"\s*\[\s*(\S)")


class JoinedLines(NamedTuple):
    """The lines of one record."""

    line: int
    """The number of lines before its first one."""
    at: int
    """The byte offset of its first line."""
    data: bytes
    """Its lines as they came, with a newline between two of them and none at the end."""
    size: int
    """The bytes of its lines, with their ends; more than `data` has if it is over the limit."""


class LineJoiner:
    """Joins the lines of records. It does no I/O, and must be given every line in order.

    The record of the last line stays open: the next line may belong to it too. `open` says where
    it begins, `end` closes it.

    >>> joiner = LineJoiner(r"\\d")
    >>> joiner.take([b"1 failed", b"  at f", b"2 fine"])
    [JoinedLines(line=0, at=0, data=b'1 failed\\n  at f', size=16)]
    >>> joiner.open
    (2, 16)
    >>> joiner.end().data
    b'2 fine'
    """

    def __init__(
        self,
        starts: str,
        *,
        line: int = 0,
        at: int = 0,
        inside: bool = False,
        encoding: str = "utf-8",
        longest: int = LONGEST,
    ) -> None:
        """`line` and `at` are the position of the next line. `inside` means that it is not the
        first of its file: lines before the first start belong to a record that began earlier, and
        are skipped."""
        self._starts_at = re.compile(starts).match
        self._encoding = encoding
        self._longest = longest
        self._line, self._at = line, at
        self._skipping = inside
        self._parts: list[bytes] = []
        self._first = (line, at)
        self._kept = self._size = 0

    @property
    def open(self) -> tuple[int, int] | None:
        """The position at which the open record begins: (line, bytes); None if there is none."""
        return self._first if self._size else None

    def begins(self, line: bytes) -> bool:
        """True if the line is the first of a record."""
        return self._starts_at(line.decode(self._encoding, "replace")) is not None

    def take(self, lines: Iterable[bytes]) -> list[JoinedLines]:
        """Takes lines, without their line ends, and returns the records that they have closed."""
        closed: list[JoinedLines] = []
        for line in lines:
            if self.begins(line):
                if record := self.end():
                    closed.append(record)
                self._skipping = False
            if not self._skipping:
                self._add(line)
            self._line += 1
            self._at += len(line) + 1
        return closed

    def end(self) -> JoinedLines | None:
        """Closes and returns the open record, whose lines have all come; None if there is none."""
        if not self._size:
            return None
        record = JoinedLines(*self._first, b"\n".join(self._parts), self._size)
        self._parts, self._kept, self._size = [], 0, 0
        return record

    def _add(self, line: bytes) -> None:
        if not self._size:
            self._first = (self._line, self._at)
        self._size += len(line) + 1
        if self._kept <= self._longest:  # one line past the limit is kept: it shows the excess
            self._parts.append(line)
            self._kept += len(line) + 1


def line_reader(
    pattern: str | None = None, *, encoding: str = "utf-8", errors: str = "strict"
) -> LineReader:
    """Returns a function that turns a line, or the joined lines of a record, into the record.

    The function raises InputError for a line that does not match and, if `errors` is "strict", for
    bytes that are invalid in the encoding; "replace" reads them as U+FFFD.
    """
    match_of = None if pattern is None else re.compile(pattern).match

    def read(line: bytes) -> dict[str, str | None]:
        text = line_text(line, encoding, errors)
        if match_of is None:
            return {"line": text}
        match = match_of(text)
        if match is None:
            raise InputError(f"the line does not match the pattern {shown_pattern(pattern)}")
        return match.groupdict()

    return read


def not_in(encoding: str) -> str:
    """Returns the error for a line with bytes that are invalid in the encoding."""
    return (
        f"a line must be {encoding.upper()}; got bytes that are not; if it is written in another "
        "encoding, say so, as with encoding='latin-1'"
    )


def line_text(line: bytes, encoding: str = "utf-8", errors: str = "strict") -> str:
    """Decodes a line, or joined lines, and removes the carriage return at the end of each."""
    try:
        text = line.decode(encoding, errors)
    except UnicodeDecodeError:
        raise InputError(not_in(encoding)) from None
    if "\n" in text:
        return text.replace("\r\n", "\n").rstrip("\r\n")
    return text.rstrip("\r")


def check_pattern(pattern: object, where: str) -> set[str]:
    """Returns the names of a pattern's groups; DefinitionError if it cannot give a record."""
    names = _compiled(pattern, where, "pattern").groupindex
    if not names:
        raise DefinitionError(
            f"{where}: pattern must name its groups, as in (?P<host>\\S+); got {pattern!r}"
        )
    return {*names}


def check_starts(starts: object, where: str) -> None:
    """DefinitionError if `starts` cannot tell records apart."""
    if _compiled(starts, where, "starts").match("") is not None:
        raise DefinitionError(
            f"{where}: starts must not match every line: it says which lines begin a record; got "
            f"{starts!r}, which matches an empty one"
        )


def shown_pattern(pattern: str | None) -> str:
    """Returns a pattern for a message as it was written, in one line, cut if it is long."""
    if pattern is None or not pattern.isprintable():
        return repr(pattern)
    return f"'{pattern}'" if len(pattern) <= 120 else f"'{pattern[:117]}...'"


def _compiled(pattern: object, where: str, option: str) -> re.Pattern[str]:
    if not isinstance(pattern, str):
        raise DefinitionError(f"{where}: {option} must be a regular expression; got {pattern!r}")
    try:
        return re.compile(pattern)
    except re.error as error:
        raise DefinitionError(
            f"{where}: {option} must be a regular expression; got {pattern!r}: {error}"
        ) from None


def is_array(read: Callable[[int], bytes], longest: int, *, growing: bool = False) -> bool:
    """True if a file is one array. `read` returns its next bytes, `longest` is the length of the
    longest line in bytes. `growing`: more may be written, so a first line that is a complete value
    is a line.

    >>> from io import BytesIO
    >>> is_array(BytesIO(b'[\\n{"n": 1}').read, 100), is_array(BytesIO(b'[{}]\\n[{}]').read, 100)
    (True, False)
    >>> is_array(BytesIO(b'[{}]').read, 100), is_array(BytesIO(b'[{}]').read, 100, growing=True)
    (True, False)
    """
    head = (read(BLOCK_BYTES) or b"").removeprefix(BOM_UTF8)
    if head.lstrip()[:1] != b"[":
        return False
    while not (begun := _ARRAY.match(head)) and (more := read(BLOCK_BYTES)):
        head += more
    if begun is None:
        return growing  # a line that is only a bracket is no value
    if begun[1] not in b"{]":
        return False
    while b"\n" not in head.lstrip() and (more := read(BLOCK_BYTES)):
        head += more
        if len(head) > longest:
            return True  # no line can be this long
    line, newline, rest = head.lstrip().partition(b"\n")
    if growing and not newline:
        return False  # not known yet
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return True
    while not rest.strip() and (more := read(BLOCK_BYTES)):
        rest = more
    return not growing and not rest.strip()
