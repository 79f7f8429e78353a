"""The rows that a batch has for sinks, on their way from tasks to the publisher.

A task sends a few with its report, and stages many in a file. What the driver gets it stages too,
before it commits the batch; the publisher reads the staged files after the commit.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from millstream.codec import decode_value, encode_value
from millstream.durable import read_checked
from millstream.errors import StoreError
from millstream.model.rules import DeadLetter
from millstream.slate_changes import SlateChanges

OutputRow = tuple[int, str, bytes]
"""(ts, key, encoded value) of an event on an output stream."""
LateEvent = tuple[str, int, str, bytes]
"""(stream, ts, key, encoded value)."""
DroppedEvent = tuple[str, str, int, str, bytes]
"""(function, stream, ts, key, encoded value)."""


class SinkRows(msgspec.Struct, omit_defaults=True):
    """Rows for sinks."""

    outputs: dict[str, list[OutputRow]] = {}
    """Events by output stream."""
    late_events: list[LateEvent] = []
    letters: list[DeadLetter] = []
    """Dead letters with encoded values, as `letter_row` makes them."""
    dropped_events: list[DroppedEvent] = []
    slate_changes: dict[str, SlateChanges] = {}
    """Changes of slates, by output."""

    def __len__(self) -> int:
        rows = sum(map(len, self.outputs.values())) + sum(map(len, self.slate_changes.values()))
        return rows + len(self.late_events) + len(self.letters) + len(self.dropped_events)

    @property
    def letter_bytes(self) -> int:
        """The size of the values of the dead letters."""
        return sum(len(letter.value) for letter in self.letters)

    def extend(self, more: SinkRows) -> None:
        for stream, rows in more.outputs.items():
            self.outputs.setdefault(stream, []).extend(rows)
        for output, changes in more.slate_changes.items():
            self.slate_changes.setdefault(output, SlateChanges()).extend(changes)
        self.late_events.extend(more.late_events)
        self.letters.extend(more.letters)
        self.dropped_events.extend(more.dropped_events)


FORMER_PLACES = {
    **{"outputs": 12, "late_events": 13, "letters": 14},
    **{"dropped_events": 25, "slate_changes": 44},
}
"""The places of the rows in what was staged by format 4 or before: a whole report, as a list."""


def read_staged(path: Path) -> SinkRows:
    """Reads output rows that a batch has staged in a file; raises StoreError if it is damaged."""
    try:
        staged = msgspec.msgpack.decode(read_checked(path), type=SinkRows | list[Any])
        if isinstance(staged, SinkRows):
            return staged
        places = FORMER_PLACES.items()
        former = {field: staged[place] for field, place in places if place < len(staged)}
        return msgspec.convert(former, SinkRows)
    except (ValueError, OSError) as error:  # msgspec's errors are ValueErrors
        raise StoreError(
            f"{path}: staged output of batch {path.name.split('-')[0].lstrip('0') or '0'} cannot "
            f"be read ({error}); restore the file from a copy of the store, or delete it to go on "
            "without that output: the slates are not affected"
        ) from None


def letter_row(letter: DeadLetter) -> DeadLetter:
    """Returns a dead letter for a report, with its value encoded as JSON.

    JSON can hold integers that a report, which is msgpack, cannot.
    """
    return replace(letter, value=encode_value(letter.value))


def sink_row(letter: DeadLetter) -> dict[str, Any]:
    """Returns the row for the sink, from a dead letter of a report."""
    row = {name: getattr(letter, name) for name in letter.__slots__}
    return {**row, "value": decode_value(letter.value)}


def event_row(ts: int, key: str, value: Any) -> dict[str, Any]:
    """Returns an output event as a row for its sink."""
    return {"ts": ts, "key": key, "value": value}
