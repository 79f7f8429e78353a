"""Sizes in whole bytes: parses them as users write them, and formats them for people."""

from __future__ import annotations

import re

from millstream.errors import DefinitionError

KIB = 1024
MIB = 1024 * KIB
_UNITS = {
    **{"": 1, "b": 1, "kb": 1000, "mb": 1000**2, "gb": 1000**3},
    **{"k": KIB, "kib": KIB, "m": MIB, "mib": MIB, "g": KIB * MIB, "gib": KIB * MIB},
}

Size = int | str
"""A size as users write it: bytes, or text with a unit such as '32MiB' or '500kB'."""


def byte_count(value: object, where: str) -> int:
    """Returns the bytes of a size: a number, or text with a unit.

    >>> byte_count("32MiB", "here"), byte_count("1.5kB", "here"), byte_count(10, "here")
    (33554432, 1500, 10)
    """
    text = str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""
    match = re.fullmatch(r"(\d+(?:\.\d+)?) ?([a-zA-Z]*)", text)
    if match is None or match[2].lower() not in _UNITS:
        raise DefinitionError(
            f"{where} must be a number of bytes, or text such as '32MiB' or '500kB'; got {value!r}"
        )
    return round(float(match[1]) * _UNITS[match[2].lower()])


def shown_size(count: int) -> str:
    """Formats a number of bytes for people.

    >>> shown_size(700), shown_size(2048), shown_size(1_363_149), shown_size(16 * MIB)
    ('700 bytes', '2 KiB', '1.3 MiB', '16 MiB')
    """
    for unit, size in (("GiB", KIB * MIB), ("MiB", MIB), ("KiB", KIB)):
        if count >= size:
            return f"{count / size:.1f}".removesuffix(".0") + f" {unit}"
    return f"{count} bytes"
