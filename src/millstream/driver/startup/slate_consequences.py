"""Compares the stored slates of an update with the type that it declares now.

A field that is gone is a loss: its value would be dropped when the slate is next written. So is a
slate that cannot be read. Reads some of the stored slates, or all; the only user functions that it
calls are migrations, on copies.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import msgspec

from millstream.codec import decode_value, encode_slate
from millstream.column_types import JSON, ColumnType, record_type
from millstream.counted_nouns import counted, verb
from millstream.driver.startup.consequence import Consequence
from millstream.driver.startup.nested_fields import (
    Path,
    is_unknown,
    lost_fields,
    removed_within,
    shown_path,
)
from millstream.driver.startup.slate_shape import field_changes, shape_of
from millstream.errors import SlateError, StaleRead
from millstream.model.function import Update
from millstream.model.migration import former_names, migration_path
from millstream.model.slate import Table
from millstream.slate_versions import migrated_entries, read_slate
from millstream.stores.contract import Shard, Store, View, after_prefix
from millstream.stores.home import Facts, SlateShape
from millstream.stores.layout import SlateRow, slates_of, table_of, unpack_slate

TRIES = 100
"""The number of attempts to open a shard while a running application changes the store."""


def kinds_fit(stored: str, wanted: str) -> bool:
    """True if slates of kind `stored` may be readable as `wanted`.

    Dicts and dataclasses are both stored as JSON, so it depends on the fields.
    """
    return stored == wanted or {stored, wanted} == {"dict", "dataclass"}


@dataclasses.dataclass
class _Looked:
    """The results of reading stored slates."""

    versions: Counter[int] = dataclasses.field(default_factory=Counter)
    unfit: int = 0
    error: str = ""
    key: str = ""
    dropped: Counter[Path] = dataclasses.field(default_factory=Counter)
    """The paths of stored fields that the dataclass does not have."""


def slate_consequences(
    update: Update,
    former: str,
    facts: Facts,
    known: SlateShape | None,
    store: Store,
    committed: Callable[[], int],
    sample: int | None,
    *,
    same: bool,
) -> Iterator[Consequence]:
    """Yields the consequences for the stored slates of an update; `same`: as in the last run."""
    if update.algebra is not None or not kinds_fit(facts.updates[former], update.kind):
        return
    name, versions = update.name, known.versions if known is not None else []
    for version in versions:
        if migration_path(update.migrations, version, update.version) is None:
            text = (
                f"slates may be stored with version {version}, and no migration leads from it to "
                f"version {update.version}: add one with @{name}.migrate({version}, "
                f"{update.version})"
            )
            yield Consequence("slates", name, "unfit", text, loss=True)
            return
    raised = bool(versions) and versions[-1] != update.version
    if known is not None and known.fields and not raised:
        changes = field_changes(update, known.fields)
        for field in changes.removed if shape_of(update).fields else ():
            yield _dropped(name, (field,), None)
        for path in _removed_within(update, known):
            yield _dropped(name, path, None)
        if changes.added or changes.renamed:
            renamed = [f"{new} (formerly {old})" for old, new in changes.renamed]
            names = ", ".join([*changes.added, *renamed])
            yield Consequence("slates", name, "fit", f"new fields: {names}")
    if sample == 0:
        return
    looked = _look(update, facts.stored(former), store, committed, sample)
    seen = sum(looked.versions.values())
    for path, number in looked.dropped.items():
        # A loss of the last run was accepted then, and slates may still have the values.
        if known is None or not known.fields or (is_unknown(path, known.columns) and not same):
            yield _dropped(name, path, number)
    if looked.unfit:
        text = (
            f"{looked.unfit:,} of {_read(seen)} cannot be read as "
            f"{update.slate.__name__}, such as that of key {looked.key!r}: {looked.error}"
        )
        yield Consequence("slates", name, "unfit", text, loss=True)
    older = seen - looked.versions[update.version] - looked.unfit
    if older > 0:
        text = (
            f"{older:,} of {_read(seen)} {verb(older, 'has', 'have')} another version, and "
            f"{verb(older, 'migrates', 'migrate')} when next used, or with `millstream migrate`"
        )
        yield Consequence("slates", name, "migrate", text)
    elif seen and not looked.unfit:
        fit = "the 1 slate that was read fits" if seen == 1 else f"all {_read(seen)} fit"
        yield Consequence("slates", name, "fit", fit)


def _read(slates: int) -> str:
    return f"{counted(slates, 'slate')} that {verb(slates, 'was', 'were')} read"


def _removed_within(update: Update, known: SlateShape) -> list[Path]:
    """Returns the paths of fields that nested dataclasses of the slate do not have any more."""
    now = shape_of(update).columns
    if known.columns is None or now is None:
        return []
    former = former_names(update.slate)
    names = tuple(former.get(name, name) for name in known.columns.names)
    before = msgspec.structs.replace(known.columns, names=names)
    return [path for path in removed_within(before, now) if len(path) > 1]


def _dropped(name: str, path: Path, number: int | None) -> Consequence:
    field = shown_path(path)
    having = "" if number is None else f", which {number:,} of the slates that were read have,"
    leave_out = "raise version= and add a migration that"
    mend = (
        f'if it was renamed, say formerly="{field}"; if it is to go, {leave_out} leaves it out'
        if len(path) == 1
        else f"{leave_out} renames it or leaves it out"
    )
    text = (
        f"field {field!r}{having} is gone: what is stored in it is dropped when the slate is next "
        f"written; {mend}"
    )
    return Consequence("slates", name, "dropped", text, loss=True)


def _view(shard: Shard, committed: Callable[[], int]) -> View:
    """Opens a shard as of the last committed batch; retries while that batch is replaced."""
    for _ in range(TRIES):
        try:
            return shard.at(committed())
        except StaleRead:
            continue
    return shard.at(committed())


def _look(
    update: Update, stored: str, store: Store, committed: Callable[[], int], sample: int | None
) -> _Looked:
    looked, prefix = _Looked(), slates_of(stored)
    now = (record_type(update.slate) or JSON) if dataclasses.is_dataclass(update.slate) else None
    for number in range(store.shards):
        with _view(store.shard(number), committed) as view:
            rows = view.scan(prefix, after_prefix(prefix), cut=len(prefix))
            for key, row in islice(rows, sample):
                slate = _try(update, stored, key.decode(), row, view, looked)
                if now is not None and slate is not None:
                    looked.dropped.update(_lost(update, unpack_slate(row), slate, now))
    return looked


def _lost(update: Update, stored: SlateRow, slate: Any, now: ColumnType) -> set[Path]:
    """Returns the paths of the fields of a stored slate that were not read."""
    value = decode_value(stored.data)
    if stored.version != update.version or not isinstance(value, dict):
        return set()
    former = former_names(update.slate)
    value = {former.get(name, name): item for name, item in value.items()}
    return set(lost_fields(value, decode_value(encode_slate(slate)), now))


def _try(update: Update, stored: str, key: str, row: bytes, view: View, looked: _Looked) -> Any:
    """Tries to read one slate; returns it, or None if it is a table or cannot be read."""
    slate = unpack_slate(row)
    looked.versions[slate.version] += 1
    try:
        if update.slate is not Table:
            return read_slate(update, slate.version, slate.data)
        if slate.version != update.version:
            table = table_of(stored, key)
            rows = view.scan(table, after_prefix(table), cut=len(table))
            migrated_entries(update, slate.version, {e.decode(): value for e, value in rows})
    except SlateError as error:
        looked.unfit += 1
        looked.error, looked.key = str(error), key
    return None
