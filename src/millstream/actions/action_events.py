"""One event to carry out, and the JSON that is sent for it.

Its id is the same for every try: `<store>-<action>-<record>`, where the record is its number in the
action's log. A dead letter that is put back gets a new id, with the suffix `-r1`, `-r2` ...: a
receiver that keeps answers by id would otherwise repeat the old refusal.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec


class ActionRow(msgspec.Struct, frozen=True):
    """A record of the action's log. Its value is not decoded, so it is sent on unchanged."""

    ts: int
    key: str
    value: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    bytes: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    """The value as base64 text if it is bytes; `value` is then left out."""


class _ActionJson(msgspec.Struct, frozen=True):
    action: str
    id: str
    key: str
    ts: int
    value: msgspec.Raw | msgspec.UnsetType
    bytes: msgspec.Raw | msgspec.UnsetType


decode_row = msgspec.json.Decoder(ActionRow).decode
"""Decodes a line of an action's log."""


@dataclass(frozen=True, slots=True)
class ActionEvent:
    """An event of an action's log."""

    action: str
    id: str
    record: int
    row: ActionRow
    retry: int = 0
    """The number of times it was put back after it had become a dead letter."""

    @classmethod
    def of(
        cls, store: str, action: str, record: int, row: ActionRow, retry: int = 0
    ) -> ActionEvent:
        suffix = f"-r{retry}" if retry else ""
        return cls(action, f"{store}-{action}-{record}{suffix}", record, row, retry)

    def json(self) -> bytes:
        """The JSON to send: one line, the same for each try."""
        row = self.row
        return msgspec.json.encode(
            _ActionJson(self.action, self.id, row.key, row.ts, row.value, row.bytes)
        )
