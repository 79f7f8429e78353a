"""Named points at which a fault run may strike; otherwise they do nothing.

    MILLSTREAM_FAULT="layer-commit:3:4711"    at batch 3, kill the process group 4711
    MILLSTREAM_TRACE="path/of/a/file"         add a line to the file at each point passed

The points, in the order in which a batch passes them: `batch-start`, `layer-commit` (before a
layer's commit), `between-layers`, `slates-committed` (before the batch is recorded),
`batch-recorded` (before the sinks), `sinks-published` (perhaps after the next `batch-start`). A
task whose input is incomplete passes `cut-off`; one whose commit is stale passes `stale`. Where
batches are flushed together, a flush passes `flush-begun` (before it is recorded), `flush-recorded`
and `flush-published`.
"""

from __future__ import annotations

import os
import signal

POINTS = (
    "batch-start",
    "layer-commit",
    "between-layers",
    "slates-committed",
    "batch-recorded",
    "sinks-published",
)
_FAULT = os.environ.get("MILLSTREAM_FAULT", "")
_TRACE = os.environ.get("MILLSTREAM_TRACE", "")


def reach(point: str, batch: int) -> None:
    """Passes a named point; kills the driver's process group if a fault run asks for it here."""
    if _TRACE:
        with open(_TRACE, "a") as trace:
            trace.write(f"{point} {batch} {os.getpid()}\n")
    if _FAULT:
        wanted, at, group = _FAULT.split(":")
        if wanted == point and int(at) == batch:
            os.killpg(int(group), signal.SIGKILL)
