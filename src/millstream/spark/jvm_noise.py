"""Keeps the noise of a starting JVM off the terminal, and lets everything else through.

The JVM's standard error is a pipe; a thread passes on each line except the known noise. What user
code prints in a worker passes through here too.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

NOISE = (
    b"WARNING: Using incubator modules",
    b"Setting default log level to",
    b"To adjust logging level use",
    b"Using Spark's default log4j profile",
    b"WARNING: A terminally deprecated method",
    b"WARNING: sun.misc.Unsafe",
    b"WARNING: Please consider reporting this",
    b"WARNING: A restricted method",
    b"WARNING: java.lang.System::load",
    b"WARNING: Use --enable-native-access",
    b"WARNING: Restricted methods",
)


@contextmanager
def filtered_stderr() -> Iterator[int]:
    """Yields a descriptor for a child process to write to.

    What it writes appears on our standard error, without the known noise. The child keeps the
    descriptor; ours is closed at the end of the block.
    """
    reading, writing = os.pipe()
    try:
        terminal = os.dup(2)
    except OSError:  # no standard error at all
        terminal = os.open(os.devnull, os.O_WRONLY)
    threading.Thread(target=_pass_on, args=(reading, terminal), daemon=True).start()
    try:
        yield writing
    finally:
        os.close(writing)


def _pass_on(reading: int, terminal: int) -> None:
    with os.fdopen(reading, "rb") as lines, os.fdopen(terminal, "wb", buffering=0) as out:
        for line in lines:
            if not line.startswith(NOISE):
                try:
                    out.write(line)
                except OSError:
                    return
