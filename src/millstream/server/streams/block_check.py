"""Checks the lines of a body together: about three times as fast as one after the other.

Nearly all bodies hold plain records only: objects with a text as their key, and a time of the kind
that the source takes. Of such lines only the key and the time are decoded; their types and bounds
are checked by the decoder. A block is accepted if every line of it certainly is. Otherwise its
lines are checked one by one (`records.RecordCheck`), which finds the bad ones and says what is
wrong with them.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any

import msgspec

from millstream.description import SourceDescription
from millstream.errors import InputError
from millstream.json_checks.skipped_fields import objects_in
from millstream.model.duration import TIME_LIMIT, UNITS
from millstream.model.path import PLAIN_KEY

_PLAIN_KEY = Annotated[str, msgspec.Meta(max_length=PLAIN_KEY)]
_INT_LIMIT = 1 << 62
"""A bound of whole numbers that the decoder can check."""


class BlockCheck:
    """Finds blocks of lines that a source can accept as they are."""

    def __init__(self, source: SourceDescription) -> None:
        self._key = source.key
        self._ts: str | None = None
        self._extract = source.source().extractor() if source.whole else None
        self._ahead = source.ahead
        self._decode: Callable[[bytes], list[Any]] | None = None
        fields = _fields(source)
        if fields is None:
            return
        names = {ours: name for ours, (name, _) in fields.items()}
        kinds = [(ours, kind) for ours, (_, kind) in fields.items()]
        self._ts = names.get("ts")
        try:
            struct = msgspec.defstruct("KeyTime", kinds, rename=names, gc=False, frozen=True)
        except ValueError:
            return  # a struct cannot have a field of that name, or two of the same
        self._decode = msgspec.json.Decoder(struct).decode_lines

    def count(self, block: bytes) -> int:
        """Returns the number of lines of a block, which has no newline at its end; 0 if it is not
        certain that all of them can be accepted."""
        if self._decode is None:
            return 0
        count = objects_in(block)
        if not count:
            return 0
        try:
            records = self._decode(block)
            if self._ts is not None:
                self._check([record.ts for record in records], self._ts)
        except (ValueError, RecursionError, TypeError, InputError):
            return 0
        return count if len(records) == count else 0

    def _check(self, times: list[Any], ts: str) -> None:
        """Raises if a time is not one, or if the latest of them is too far ahead.

        ISO 8601 times are compared as text, which ignores zones and shorter forms. The application
        finds the times that this check misses.
        """
        if type(times[0]) is str:
            list(map(datetime.fromisoformat, times))
        if self._ahead is not None and self._extract is not None:
            record = {ts: max(times)}
            if self._key is not None:
                record[self._key] = ""
            self._extract(record, time.time_ns() // 1_000)


def _fields(source: SourceDescription) -> dict[str, tuple[str, Any]] | None:
    """Returns the name and the type of the fields to decode; None if that cannot be said, and each
    record must be looked at."""
    fields: dict[str, tuple[str, Any]] = {}
    if not source.whole:
        return fields
    if source.key is not None:
        fields["key"] = source.key, _PLAIN_KEY
    if source.ts is not None:
        kind = _time_kind(source)
        if kind is None:
            return None
        fields["ts"] = source.ts, kind
    return None if any("." in name for name, _ in fields.values()) else fields


def _time_kind(source: SourceDescription) -> Any:
    """Returns the type of times that surely are valid; None if there is none."""
    if source.unit is None:
        return str if source.time_format is None else None
    bound = _bound(source.unit)
    whole = min(bound, _INT_LIMIT)
    return (
        Annotated[int, msgspec.Meta(gt=-whole, lt=whole)]
        | Annotated[float, msgspec.Meta(gt=-float(bound), lt=float(bound))]
    )


def _bound(unit: str) -> int:
    """Returns a bound below which numbers surely are valid times: half of the range, so that
    rounding does not matter."""
    return TIME_LIMIT * 500 if unit == "ns" else TIME_LIMIT // (2 * UNITS[unit])
