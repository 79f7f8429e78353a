"""Messages of a run, on standard error."""

from __future__ import annotations

import sys


def say(message: str) -> None:
    """Prints a line on stderr; above the live lines, if there are any, which redirect stderr."""
    print(f"millstream: {message}", file=sys.stderr, flush=True)
