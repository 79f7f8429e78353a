"""Records in dead letters: how a letter holds a record that never became an event.

A letter keeps the record as it came, so that a retry can read it again: as text, or as bytes if it
is not UTF-8. Of a record over `KEPT_BYTES` only the beginning is kept, for people. The letter's
`form` says what its value is, and a value that is not the whole record is never retried.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

RecordForm = Literal["json", "line", "row", "bytes", "part", "event"]
"""What the value of a letter is:

- `json`: the record's JSON text.
- `line`: a line of text, or the joined lines of a record.
- `row`: a row of a CSV file, without its header.
- `bytes`: a record of bytes.
- `part`: the beginning or a description of a record that was not kept.
- `event`: the value of an event that was retried for a function that is gone.
"""
KEPT_BYTES = 64 * 1024
"""The most bytes of a record that is kept whole."""
SHOWN_CHARACTERS = 2_000
"""The most characters that are kept of a longer one. Earlier versions kept no more of any record
that could not be read."""

_AGAIN = "; take it in again from where it came"
_REASONS = {
    "row": "a row of a CSV file, which cannot be read without its header" + _AGAIN,
    "part": "a record that was not kept whole" + _AGAIN,
    "event": "an event that was retried for a function that the application did not have",
}
_FILE = "a whole file; write it again, complete, under a new name"
_EARLIER = (
    "a record that an earlier version may have cut at {characters:,} characters, or in which it "
    "may have replaced bytes that are not UTF-8" + _AGAIN
)


@dataclass(frozen=True, slots=True)
class RecordAttributes:
    """What is not in the value of a Kafka record: its own key and time, and its headers.

    The letter has the key and the time; this says which of them are the record's own, so that a
    retry takes them from the letter.
    """

    own: tuple[str, ...] = ()
    """Which of "key" and "ts" in the letter are those of the record."""
    replaced: tuple[str, ...] = ()
    """Which of "key" and "ts" the address takes from the record even if the source declares it."""
    headers_field: str = ""
    """The field of the value that the headers are put into, if they are not in it yet."""
    headers: dict[str, str | None] | None = None


class Bad(NamedTuple):
    """A record that could not be read, or a whole file (line 0)."""

    line: int
    """The line in the file, or the row in a Parquet file, counted from 1; 0 for the whole file."""
    value: str | bytes
    """The record: text, or bytes if it is not UTF-8. Empty for a whole file."""
    error: str
    form: RecordForm | None = "part"
    key: str = ""
    """Its key, if it is not in the record."""
    stamp: int | None = None
    """The time at which it arrived, if its event time is not in the record."""
    attributes: RecordAttributes | None = None
    """Of a Kafka record: what else is not in it."""


def bad_record(
    line: int, record: bytes, error: str, form: RecordForm, key: str = "", stamp: int | None = None
) -> Bad:
    """Returns the `Bad` of a record, whole if it is short enough.

    >>> bad_record(1, b"on", "no", "line").value, bad_record(1, b"\\xe9", "no", "line").value
    ('on', b'\\xe9')
    """
    if len(record) > KEPT_BYTES:
        return Bad(line, beginning(record), error, "part", key, stamp)
    return Bad(line, text_or_bytes(record), error, form, key, stamp)


def text_or_bytes(record: bytes) -> str | bytes:
    """Returns a record as text, or as it is if it is not UTF-8."""
    try:
        return record.decode()
    except UnicodeDecodeError:
        return record


def beginning(record: bytes | str) -> str:
    """Returns the first characters of a record, for people."""
    if isinstance(record, bytes):
        record = record[: 4 * SHOWN_CHARACTERS].decode("utf-8", "replace")
    return record[:SHOWN_CHARACTERS]


def why_not_whole(value: Any, form: RecordForm | None, line: int | None) -> str | None:
    """Returns why the letter of a record that never became an event does not hold the record; None
    if it does."""
    if line == 0 and value == "":
        return _FILE
    if form is not None:
        return _REASONS.get(form)
    if isinstance(value, str) and (len(value) == SHOWN_CHARACTERS or "\ufffd" in value):
        return _EARLIER.format(characters=SHOWN_CHARACTERS)
    return None
