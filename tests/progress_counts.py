"""Writes and reads a progress as tests state it: each count of functions by function."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from millstream.stores.function_counts import FunctionCounts
from millstream.stores.progress import Progress


def functions(**counts: Mapping[str, Any]) -> dict[str, FunctionCounts]:
    """The counts of functions, given for each count by function."""
    made: dict[str, FunctionCounts] = {}
    for field, by_function in counts.items():
        for name, count in by_function.items():
            setattr(made.setdefault(name, FunctionCounts()), field, count)
    return made


def set_fields(progress: Progress, **fields: Any) -> Progress:
    """Sets fields of a progress and of its parts, and counts of functions, given by function.

    `waiting_at` and `late_at` are counts of functions, where the progress has totals of that name.
    """
    for given, value in fields.items():
        name = given.removesuffix("_at")
        if name in FunctionCounts.__struct_fields__ and isinstance(value, Mapping):
            for function, count in value.items():
                counts = progress.functions.setdefault(function, FunctionCounts())
                setattr(counts, name, count)
            continue
        parts = (progress, progress.pending, progress.timing)
        (part,) = (part for part in parts if hasattr(part, name))
        setattr(part, name, value)
    return progress


def by_function(of: Mapping[str, FunctionCounts], field: str) -> dict[str, Any]:
    """One count of each function; without functions that have none."""
    counts = {name: getattr(counts, field) for name, counts in of.items()}
    return {name: count for name, count in counts.items() if count}
