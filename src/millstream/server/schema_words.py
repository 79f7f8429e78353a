"""Constants and functions with short names for writing JSON schemas."""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
WHOLE: Schema = {"type": "integer"}
NUMBER: Schema = {"type": "number"}
YES_NO: Schema = {"type": "boolean"}
ANY: Schema = {}


def maybe(schema: Schema) -> Schema:
    """The schema, or null."""
    return {**schema, "type": [schema["type"], "null"]}


def record(**fields: Schema) -> Schema:
    """An object that has all of these fields."""
    return {"type": "object", "required": list(fields), "properties": fields}


def options(**fields: Schema) -> Schema:
    """An object that may have any of these fields, and no others."""
    return {"type": "object", "properties": fields, "additionalProperties": False}


def listed(schema: Schema) -> Schema:
    return {"type": "array", "items": schema}


def by_name(schema: Schema) -> Schema:
    """An object with any field names, whose values all have this schema."""
    return {"type": "object", "additionalProperties": schema}
