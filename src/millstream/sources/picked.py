"""Decodes only the needed fields of a block of JSON lines: three to ten times as fast.

To route an event, only its key and its time are needed. The rest of the line need not become Python
objects before the event is fed, or at all if an aggregate such as a count does not look at it. The
result must be the same as that of decoding every line completely, bad lines included. A block for
which this is not certain is decoded completely. It is certain of lines of one layout, which are
read as columns (`columnar.line_layout`), and of other lines if nothing wrong can hide in what the
decoder skips (`json_checks.skipped_fields`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from millstream.columnar.arrow_arrays import text_array
from millstream.columnar.line_layout import LaidLines, LayoutReader
from millstream.columnar.picked_fields import Fields, Picked
from millstream.json_checks.skipped_fields import objects_in


@lru_cache(maxsize=16)
def picker(fields: Fields) -> Callable[[bytes], Picked | None]:
    """Returns a function that picks the fields from a block of lines.

    The function returns None for a block that must be decoded completely. These are all blocks if
    a struct cannot have a field of that name (with a quote, a backslash or a control character).
    """
    decoded = (lambda _: None) if fields.only_laid else _decoding(fields)
    read = LayoutReader().read

    def pick(block: bytes) -> Picked | None:
        laid = read(block)
        picked = None if laid is None else _of_laid(laid, fields, block)
        return decoded(block) if picked is None else picked

    return pick


def _of_laid(laid: LaidLines, fields: Fields, block: bytes) -> Picked | None:
    """Returns the fields of laid lines; None if they do not have them."""
    keys = None if fields.key is None else laid.column(fields.key, text=True)
    times = None if fields.ts is None else laid.column(fields.ts, text=False)
    if (keys is None) is not (fields.key is None) or (times is None) is not (fields.ts is None):
        return None
    texts = [name for name, is_text in zip(*laid.layout[:2], strict=True) if is_text]
    is_whole = texts in ([], [fields.key])
    in_columns = fields.numbers or (fields.whole and is_whole)
    return Picked(
        keys,
        times,
        _lines_of(block) if fields.lines and not (in_columns and is_whole) else None,
        laid if in_columns else None,
    )


def _decoding(wanted: Fields) -> Callable[[bytes], Picked | None]:
    """Returns a function that picks from any lines, with a JSON decoder."""
    key, ts = wanted.key, wanted.ts
    fields: list[tuple[str, Any]] = []
    names: dict[str, str] = {}
    for ours, name, kind in (("key", key, str), ("ts", ts, int)):
        if name is not None:
            fields.append((ours, kind))
            names[ours] = name
    try:
        struct = msgspec.defstruct("Picked", fields, rename=names, gc=False, frozen=True)
    except ValueError:
        return lambda block: None
    decode = msgspec.json.Decoder(struct).decode_lines

    def pick(block: bytes) -> Picked | None:
        count = objects_in(block)
        if not count:
            return None
        try:
            records: list[Any] = decode(block)
        except (ValueError, RecursionError):
            return None
        if len(records) != count:
            return None
        try:
            return Picked(
                None if key is None else text_array([record.key for record in records]),
                None if ts is None else np.array([record.ts for record in records], np.int64),
                _lines_of(block) if wanted.lines else None,
            )
        except OverflowError:  # a time of more than 64 bits
            return None

    return pick


def _lines_of(block: bytes) -> pa.Array:
    """Returns the lines of a block without creating an object for each."""
    newlines = np.flatnonzero(np.frombuffer(block, np.uint8) == ord("\n"))
    count = len(newlines) + 1
    offsets = np.zeros(count + 1, np.int64)
    offsets[1:-1] = newlines - np.arange(count - 1)
    offsets[-1] = len(block) - (count - 1)
    data = pa.py_buffer(block.replace(b"\n", b""))
    return pa.Array.from_buffers(pa.large_binary(), count, [None, pa.py_buffer(offsets), data])
