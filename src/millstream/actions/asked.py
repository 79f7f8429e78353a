"""One thing that is to be carried out, and what is sent for it.

Its id is the same for every try: `<store>-<action>-<record>`, where the record is its number in the
action's log. One that was a dead letter and is put back gets a new id, with `-r1`, `-r2` ... behind
it: a receiver that keeps answers by id would else answer with the old refusal.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec


class Row(msgspec.Struct, frozen=True):
    """A record of the action's log. Its value is not looked at, and so goes out as it came."""

    ts: int
    key: str
    value: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    bytes: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    """In place of `value` if that is bytes: they are text in base64."""


class _Sent(msgspec.Struct, frozen=True):
    action: str
    id: str
    key: str
    ts: int
    value: msgspec.Raw | msgspec.UnsetType
    bytes: msgspec.Raw | msgspec.UnsetType


_row = msgspec.json.Decoder(Row).decode


@dataclass(frozen=True, slots=True)
class Asked:
    """An event of an action's log."""

    action: str
    id: str
    record: int
    row: Row
    retry: int = 0
    """How often it was put back after it had become a dead letter."""

    @classmethod
    def of(cls, store: str, action: str, record: int, row: Row, retry: int = 0) -> Asked:
        again = f"-r{retry}" if retry else ""
        return cls(action, f"{store}-{action}-{record}{again}", record, row, retry)

    def json(self) -> bytes:
        """What is sent: one line, the same each time."""
        row = self.row
        return msgspec.json.encode(
            _Sent(self.action, self.id, row.key, row.ts, row.value, row.bytes)
        )


def decode_row(line: bytes) -> Row:
    """The row of a line of an action's log."""
    return _row(line)
