"""The layout of text from outside: its records, encoding and delimiter.

*Encodings.* The default is UTF-8. An encoding with one byte for each character and ASCII in its
lower half, such as Latin-1 or cp1252, is read in the same way: a newline is one byte, so a file can
be cut anywhere. A file in UTF-16 is read whole. Others are refused: in Shift JIS or GBK a byte
within one character may be that of another character.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from millstream.errors import DefinitionError, InputError
from millstream.model.line_records import LineJoiner, check_pattern, check_starts, line_reader

UTF_8 = "utf-8"
WIDE = ("utf-16", "utf-16-le", "utf-16-be")
"""Encodings with more than one byte for a newline."""


@dataclass(frozen=True, slots=True)
class TextForm:
    """The layout of a source's text; made by `text_form`, which checks it."""

    pattern: str | None = None
    """For text: a regular expression whose named groups are the record; None: `{"line": TEXT}`."""
    starts: str | None = None
    """For text: a regular expression that the first line of a record matches; None: every line is a
    record."""
    encoding: str = UTF_8
    """For text and CSV, by Python's name for it."""
    delimiter: str = ","
    """For CSV: the character between two fields."""

    @property
    def is_wide(self) -> bool:
        """True if a newline has more than one byte: then a file cannot be cut."""
        return self.encoding in WIDE

    @property
    def line_encoding(self) -> str:
        """The encoding of the lines: files in a wide encoding are converted to UTF-8 first."""
        return UTF_8 if self.is_wide else self.encoding


PLAIN_TEXT = TextForm()
"""UTF-8, one record per line; CSV with commas."""


def text_form(
    where: str,
    *,
    pattern: str | None = None,
    starts: str | None = None,
    encoding: str | None = None,
    delimiter: str | None = None,
) -> TextForm:
    """Returns the form that a user has declared; DefinitionError from `where` if it is invalid."""
    if pattern is not None:
        check_pattern(pattern, where)
    if starts is not None:
        check_starts(starts, where)
    if delimiter is not None and not _is_delimiter(delimiter):
        raise DefinitionError(
            f"{where}: delimiter must be one character, such as ';' or a tab, and no quote or "
            f"line end; got {delimiter!r}"
        )
    return TextForm(
        pattern,
        starts,
        UTF_8 if encoding is None else _encoding(encoding, where),
        "," if delimiter is None else delimiter,
    )


class TextRecord(NamedTuple):
    """A record of a text, or the error in its place."""

    line: int
    """The line on which it begins, counted from 1."""
    text: bytes
    record: dict[str, str | None] | None
    error: InputError | None = None


def text_records(text: bytes, form: TextForm) -> Iterator[TextRecord]:
    """Yields the records of a whole text, as a file with this text would give them.

    >>> [line.record for line in text_records(b"a 1\\nb 2\\n", TextForm(r"(?P<name>\\w+)"))]
    [{'name': 'a'}, {'name': 'b'}]
    """
    read = line_reader(form.pattern, encoding=form.line_encoding)
    lines = text.removeprefix(codecs.BOM_UTF8).removesuffix(b"\n").split(b"\n")
    numbered = list(enumerate(lines))
    if form.starts is not None:
        joiner = LineJoiner(form.starts, encoding=form.line_encoding)
        joined = [*joiner.take(lines), joiner.end()]
        numbered = [(record.line, record.data) for record in joined if record is not None]
    for line, data in numbered:
        if data.strip(b"\r\n"):
            try:
                yield TextRecord(line + 1, data, read(data))
            except InputError as error:
                yield TextRecord(line + 1, data, None, error)


def _is_delimiter(given: object) -> bool:
    return isinstance(given, str) and len(given) == 1 and given not in '"\r\n\0'


def encoding_of_lines(given: object) -> str | None:
    """Returns Python's name of an encoding; None if its lines do not end as in ASCII.

    >>> encoding_of_lines("Latin1"), encoding_of_lines("UTF8"), encoding_of_lines("utf-16")
    ('iso8859-1', 'utf-8', None)
    """
    name = _name_of(given)
    ascii_bytes = bytes(range(128))
    try:
        bytes(range(128, 256)).decode(name, "replace")  # raises for a codec of names, as idna
        return name if ascii_bytes.decode(name) == ascii_bytes.decode("ascii") else None
    except (LookupError, UnicodeError):
        return None  # not a text codec, or one that cannot decode these bytes


def _encoding(given: object, where: str) -> str:
    """Returns Python's name of an encoding; DefinitionError if files cannot be read in it."""
    name = _name_of(given)
    name = {"utf-8-sig": UTF_8, "ascii": UTF_8}.get(name, name)
    if name not in (UTF_8, *WIDE) and not _is_single_byte(name):
        raise DefinitionError(
            f"{where}: encoding must be utf-8, utf-16, or one with a byte for each character, such "
            f"as latin-1 or cp1252; got {given!r}; convert text in other encodings to UTF-8"
        )
    return name


def _name_of(given: object) -> str:
    """Returns Python's name of an encoding; empty if there is none."""
    try:
        return codecs.lookup(str(given)).name
    except (LookupError, ValueError):
        return ""


def _is_single_byte(name: str) -> bool:
    """True if an encoding has ASCII in its lower half and every byte is a character of its own."""
    if encoding_of_lines(name) is None:
        return False
    try:
        pairs = (bytes([high, low]) for high in range(128, 256) for low in (0x41, 0x81, 0xA1))
        return all(len(pair.decode(name, "replace")) == 2 for pair in pairs)
    except UnicodeError:
        return False
