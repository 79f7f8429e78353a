"""A letter: a row of the logs of dead letters, and of late, dropped and diverted events."""

from __future__ import annotations

import base64
from typing import Any

import msgspec

from millstream.model.letter_records import RecordForm


class LetterRow(msgspec.Struct, frozen=True, omit_defaults=True):
    """A letter, as a sink has written it. Each kind of letter has some of the fields."""

    function: str | None = None
    """The map or update that failed, or that dropped or diverted the event."""
    stream: str | None = None
    ts: int | None = None
    key: str | None = None
    value: Any = None
    bytes: str | None = None
    """The value as base64 text if it is bytes; `value` is then left out."""
    error: str | None = None
    batch: int | None = None
    timer: str | None = None
    file: str | None = None
    line: int | None = None
    form: RecordForm | None = None
    attributes: str | None = None
    """`RecordAttributes` as JSON."""

    @property
    def content(self) -> Any:
        """The value: JSON or bytes."""
        return self.value if self.bytes is None else base64.b64decode(self.bytes)

    @property
    def is_record(self) -> bool:
        """True for a record that never became an event."""
        return self.function is None and self.error is not None
