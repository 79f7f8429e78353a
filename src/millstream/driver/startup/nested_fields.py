"""Finds fields of nested dataclasses that the current type of a slate no longer has.

Two comparisons, as stored slates may be too many to read. The *declared* one compares the types of
the last run and of this one, as columns. Columns do not tell what is in a part of type `json`, such
as a dict with whole numbers as keys or a dataclass within itself: for these parts, and for stores
that do not know their columns, a *stored* slate is compared with what was read of it.

A path has a name for each field, `[]` for an item of a list or a dict, and `*` for anything within
a part of type `json`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from millstream.column_types import JSON, ColumnType

Path = tuple[str, ...]
ITEM, ANY = "[]", "*"


def removed_within(before: ColumnType, now: ColumnType, path: Path = ()) -> Iterator[Path]:
    """Yields the paths of fields that the type had `before` and does not have now.

    >>> text = ColumnType("text")
    >>> old = ColumnType("list", parts=(ColumnType("record", ("at", "by"), (text, text)),))
    >>> new = ColumnType("list", parts=(ColumnType("record", ("at",), (text,)),))
    >>> [shown_path(path) for path in removed_within(old, new, ("visits",))]
    ['visits[].by']
    """
    if before.kind != now.kind:
        return  # values of another kind do not fit, or are kept as they are
    if before.kind != "record":
        for old, new in zip(before.parts, now.parts, strict=True):
            yield from removed_within(old, new, (*path, ITEM))
        return
    fields = dict(zip(now.names, now.parts, strict=True))
    for name, part in zip(before.names, before.parts, strict=True):
        if name in fields:
            yield from removed_within(part, fields[name], (*path, name))
        else:
            yield (*path, name)


def lost_fields(stored: Any, read: Any, now: ColumnType, path: Path = ()) -> Iterator[Path]:
    """Yields the paths of fields of a stored value that are not in what was read of it; `now` is
    the type as which it was read.

    >>> list(lost_fields({"a": 1, "b": {"c": 2}}, {"b": {}}, JSON))
    [('a',), ('*', 'c')]
    """
    if isinstance(stored, dict) and isinstance(read, dict):
        fields = dict(zip(now.names, now.parts, strict=True)) if now.kind == "record" else {}
        for name, value in stored.items():
            if name not in read:
                yield (*path, name)
                continue
            inner = now.parts[0] if now.kind == "map" else fields.get(name, JSON)
            step = ITEM if now.kind == "map" else name if name in fields else ANY
            yield from lost_fields(value, read[name], inner, (*path, step))
    elif isinstance(stored, list) and isinstance(read, list):
        step, inner = (ITEM, now.parts[0]) if now.kind == "list" else (ANY, JSON)
        for value, again in zip(stored, read, strict=False):
            yield from lost_fields(value, again, inner, (*path, step))


def is_unknown(path: Path, before: ColumnType | None) -> bool:
    """True if the type of the last run does not tell whether it had a field.

    If it tells, the declared comparison decides: a field that the last run did not have any more
    was given up then.
    """
    kind = JSON if before is None else before
    for name in path:
        if kind.kind == "json":
            return True
        if name == ITEM and kind.kind in ("list", "map"):
            kind = kind.parts[0]
        elif name in kind.names:
            kind = kind.parts[kind.names.index(name)]
        else:
            return False
    return False


def shown_path(path: Path) -> str:
    """Returns a path as text.

    >>> shown_path(("visits", "[]", "at")), shown_path(("homes", "*", "zip"))
    ('visits[].at', 'homes.*.zip')
    """
    return ".".join(path).replace(f".{ITEM}", ITEM)
