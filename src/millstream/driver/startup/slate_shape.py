"""Describes the form of an update's slates, so that a start sees changes without reading them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, NamedTuple

import msgspec

from millstream.column_types import record_type
from millstream.model.function import Update
from millstream.model.migration import former_names
from millstream.stores.home import SlateShape


def shape_of(update: Update) -> SlateShape:
    """Returns the form of the slates that an update stores from now on."""
    if not dataclasses.is_dataclass(update.slate):
        return SlateShape([update.version])
    (root,), parts = msgspec.json.schema_components([update.slate])
    described = parts.get(update.slate.__name__, root)
    fields = {name: _words(kind) for name, kind in described.get("properties", {}).items()}
    whole = msgspec.json.encode([described, parts], order="sorted")
    return SlateShape(
        [update.version], fields, sha256(whole).hexdigest()[:16], record_type(update.slate)
    )


def _words(kind: Mapping[str, Any]) -> str:
    """Describes a field's type in a few words, from its JSON schema."""
    if "anyOf" in kind:
        return " or ".join(_words(option) for option in kind["anyOf"])
    if "$ref" in kind:
        return str(kind["$ref"]).rpartition("/")[2]
    words = str(kind.get("type", "any"))
    inner = kind.get("items") or kind.get("additionalProperties")
    return f"{words} of {_words(inner)}" if isinstance(inner, dict) else words


class FieldChanges(NamedTuple):
    """The differences between the former and the current fields of a dataclass slate."""

    added: list[str]
    removed: list[str]
    """Fields whose values nothing reads any more."""
    renamed: list[tuple[str, str]]
    changed: list[str]
    """Fields that have another type now."""


def field_changes(update: Update, before: Mapping[str, str]) -> FieldChanges:
    """Compares an update's fields with those from `before`."""
    now = shape_of(update).fields
    former = {old: new for old, new in former_names(update.slate).items() if old in before}
    return FieldChanges(
        [name for name in now if name not in before and name not in former.values()],
        [name for name in before if name not in now and name not in former],
        [(old, new) for old, new in former.items() if new not in before],
        [name for name in now if name in before and before[name] != now[name]],
    )
