"""Reads a stored slate of any version in the form that the update's functions expect.

The reference, the engine and the checks of stored slates before a start all use it. A failure here
is the fault of the slate or of the migration, not of the event that happened to come: it is raised
as SlateError.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from millstream.codec import decode_value, encode_slate, encode_value, slate_codec
from millstream.errors import SlateError
from millstream.model.function import Update
from millstream.model.migration import migration_path
from millstream.model.place import FAILURES, described
from millstream.model.slate import Table

Entries = Mapping[str, bytes]


def read_slate(update: Update, version: int, data: bytes) -> Any:
    """Returns the slate that was stored as `data`; SlateError if it does not fit the update."""
    if version != update.version:
        data = migrated(update, version, data)
    try:
        return slate_codec(update.slate).decode(data)
    except FAILURES as error:
        raise unfit(update, version, error) from None


def migrated(update: Update, version: int, data: bytes) -> bytes:
    """Migrates the data of a slate to the update's version; SlateError if that fails."""
    value = _through(update, version, decode_value(data))
    try:
        encoded = encode_slate(value)
        codec = slate_codec(update.slate)
        return codec.encode(codec.decode(encoded))
    except FAILURES as error:
        raise unfit(update, version, error) from None


def migrated_entries(update: Update, version: int, entries: Entries) -> dict[str, bytes]:
    """Migrates all entries of a table to the update's version; SlateError if that fails."""
    values = {entry: decode_value(value) for entry, value in entries.items()}
    result = _through(update, version, values)
    try:
        return {str(entry): encode_value(value) for entry, value in result.items()}
    except FAILURES as error:
        raise unfit(update, version, error) from None


def _through(update: Update, version: int, value: Any) -> Any:
    steps = migration_path(update.migrations, version, update.version)
    if steps is None:
        raise SlateError(
            f"the slate of update {update.name!r} is stored with version {version}, and no "
            f"migration leads to version {update.version}: add a function with "
            f"@{update.name}.migrate({version}, {update.version}), then retry what failed"
        )
    for step in steps:
        try:
            result = step.function(value)
            if result is not None:  # else it has changed its argument in place
                value = decode_value(encode_slate(result))
        except FAILURES as error:
            raise SlateError(
                f"the slate of update {update.name!r} is stored with version {version}, and its "
                f"migration from {step.before} to {step.after} failed: {described(error)}; fix "
                "it, then retry what failed"
            ) from None
    return value


def unfit(update: Update, version: int, error: BaseException) -> SlateError:
    """Returns the error for a slate that its update cannot read."""
    kind = "table" if update.slate is Table else update.slate.__name__
    return SlateError(
        f"the slate of update {update.name!r}, stored with version {version}, does not fit {kind}: "
        f"{error}; the event is not to blame: give the field a default or its former name, or "
        "raise version= and add a migration, then retry what failed"
    )
