"""Spark's checkpoint as files: what Millstream reads there, and holds it against.

    metadata        the id of the query
    offsets/N       line 3: the heartbeat's offset of batch N, which carries a checksum of its own
    commits/N       that Spark is done with batch N; redundant for Millstream

Spark writes these files, so none of them has a checksum of ours but for the offset in the middle
of `offsets/N`; the whole file of the last committed batch has one in the store's progress.
"""

from __future__ import annotations

import json
from typing import Any
from zlib import crc32

CHECK = "check"


def with_check(offset: dict[str, Any]) -> dict[str, Any]:
    """An offset that tells whether it is what was planned.

    >>> offset_of(b"v1\\n{}\\n" + json.dumps(with_check({"clock": 7})).encode())["clock"]
    7
    """
    return {**offset, CHECK: _check(offset)}


def _check(offset: dict[str, Any]) -> int:
    planned = {name: value for name, value in offset.items() if name != CHECK}
    return crc32(json.dumps(planned, sort_keys=True).encode())


def offset_of(content: bytes) -> dict[str, Any]:
    """The heartbeat's offset in a file of offsets; ValueError if that is damaged."""
    lines = content.splitlines()
    if len(lines) != 3 or lines[0] != b"v1":
        raise ValueError("it must have version v1 and two lines more")
    offset = json.loads(lines[2])
    if not isinstance(offset, dict) or offset.get(CHECK) != _check(offset):
        raise ValueError("the offset does not fit its checksum")
    return offset


def is_whole(content: bytes) -> bool:
    """Whether a file of Spark's logs has its version and lines of JSON."""
    try:
        version, *lines = content.decode().splitlines()
        return version == "v1" and all(json.loads(line) is not None for line in lines)
    except ValueError:
        return False


def id_of(content: bytes) -> str:
    """The id of the query in Spark's metadata; ValueError if that is damaged."""
    try:
        return str(json.loads(content)["id"])
    except (KeyError, TypeError) as error:
        raise ValueError(f"it must have an id: {error}") from None
