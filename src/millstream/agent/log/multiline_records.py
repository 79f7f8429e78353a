"""Joins the lines of a log that form one record, such as a stack trace (`Logs(starts=...)`).

A record begins at a line that `starts` matches, and has all lines up to the next such line, joined
by their line ends. The first line of a file begins a record too. A joined record has as many bytes
as its lines with their ends, so offsets in a file are counted as for single lines.

The last record of a file counts as whole when the next one begins, when nothing follows, or when
nothing was written for a while (`log_follower.SILENCE`). A record of more than `MOST_LINES` lines
or `log_files.LONGEST` bytes is cut there, and the rest is another record.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from millstream.model.line_records import LineJoiner

MOST_LINES = 1_000


@dataclass(frozen=True)
class Framing:
    """Defines which lines form a record."""

    starts: str
    encoding: str = "utf-8"
    _joiner: LineJoiner = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_joiner", LineJoiner(self.starts, encoding=self.encoding))

    def joined(self, lines: list[bytes]) -> list[bytes]:
        """Returns the records of lines; the first line begins a record.

        >>> Framing("[0-9]").joined([b"1 failed", b"  at f", b"2 fine"])
        [b'1 failed\\n  at f', b'2 fine']
        """
        records: list[bytes] = []
        begin = 0
        for index in range(1, len(lines)):
            if index - begin >= MOST_LINES or self._joiner.begins(lines[index]):
                records.append(b"\n".join(lines[begin:index]))
                begin = index
        if lines:
            records.append(b"\n".join(lines[begin:]))
        return records

    def whole(self, data: bytes) -> int:
        """Returns how many bytes of `data` are whole records; it begins with a record.

        >>> Framing("[0-9]").whole(b"1 failed\\n  at f\\n")
        0
        >>> Framing("[0-9]").whole(b"1 failed\\n  at f\\n2 fine\\n")
        16
        """
        end = data.rfind(b"\n") + 1
        while end > 0:
            begin = data.rfind(b"\n", 0, end - 1) + 1
            if begin and self._joiner.begins(data[begin : end - 1]):
                return begin
            end = begin
        return self._cut(data)

    def _cut(self, data: bytes) -> int:
        """Returns the size of the pieces that a record over the limit of lines is cut into."""
        lines = data.count(b"\n") // MOST_LINES * MOST_LINES
        size = 0
        for _ in range(lines):
            size = data.index(b"\n", size) + 1
        return size
