"""The limit on the nesting of JSON values, wherever they come from.

Python reads nested values by recursion, and the possible depth depends on the process: a record
that one process can read may stop another for good. So there is a limit far below that depth, the
same at every entrance.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

DEEPEST = 500
"""The most lists and objects within one another; half of the interpreter's initial limit."""

WINDOW = 64 << 10
"""The bytes of a value that are scanned at a time."""
_STRIDE = 256
_NO_BRACKETS = bytes(byte for byte in range(256) if byte not in b"[]{}")


def too_deep(json: bytes) -> bool:
    """True if a JSON value, which must be complete, is nested too deeply.

    >>> too_deep(b"[" * 500 + b"]" * 500), too_deep(b"[" * 501 + b"]" * 501)
    (False, True)
    """
    # The length alone decides for nearly every value, and a count for nearly all others.
    if len(json) <= 2 * DEEPEST or json.count(b"[") + json.count(b"{") <= DEEPEST:
        return False
    depth = 0
    for brackets in _outside_texts(json):
        for at in range(0, len(brackets), _STRIDE):
            stride = brackets[at : at + _STRIDE]
            opened = stride.count(b"[") + stride.count(b"{")
            if depth + opened > DEEPEST and _deepest(stride, depth) > DEEPEST:
                return True
            depth += 2 * opened - len(stride)
    return False


def any_too_deep(values: Sequence[bytes]) -> bool:
    """True if any of these JSON values is nested too deeply."""
    return max(map(len, values), default=0) > 2 * DEEPEST and any(map(too_deep, values))


def _outside_texts(json: bytes) -> Iterator[bytes]:
    """Yields the brackets of a value that are outside its texts, a window at a time."""
    if b"\\" in json:
        json = json.replace(b"\\\\", b"").replace(b'\\"', b"")
    within = 0
    for at in range(0, len(json), WINDOW):
        parts = json[at : at + WINDOW].split(b'"')
        yield b"".join(parts[within::2]).translate(None, _NO_BRACKETS)
        within ^= (len(parts) - 1) & 1


def _deepest(brackets: bytes, depth: int) -> int:
    """Returns the greatest depth within these brackets, which begin at `depth`."""
    deepest = depth
    for bracket in brackets:
        depth += 1 if bracket in b"[{" else -1
        deepest = max(deepest, depth)
    return deepest
