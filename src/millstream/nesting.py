"""How deep a JSON value may be nested, wherever it comes from.

Python reads nested values by recursion, and how deep that goes depends on who reads: a record that
one process can read may stop another for good. So a limit is set far below, the same at every
entrance.
"""

from __future__ import annotations

import re

DEEPEST = 500
"""Lists and objects within one another; half of what the interpreter allows when it starts."""

_TEXT = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"')
_NO_BRACKETS = bytes(byte for byte in range(256) if byte not in b"[]{}")


def too_deep(json: bytes) -> bool:
    """Whether a JSON value, which must be a whole one, is nested too deeply.

    >>> too_deep(b"[" * 500 + b"]" * 500), too_deep(b"[" * 501 + b"]" * 501)
    (False, True)
    """
    # Nearly every value is told by its length alone, and nearly all others by a count.
    if len(json) <= 2 * DEEPEST or json.count(b"[") + json.count(b"{") <= DEEPEST:
        return False
    depth = 0
    for bracket in _TEXT.sub(b"", json).translate(None, _NO_BRACKETS):
        depth += 1 if bracket in b"[{" else -1
        if depth > DEEPEST:
            return True
    return False
