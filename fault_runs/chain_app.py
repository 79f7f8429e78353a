"""The chain as an application for `millstream run`, slowed down by environment variables.

Each event of its map takes FAULT_RUNS_MS milliseconds, and waits while the file FAULT_RUNS_GATE
exists: so a scenario can hold a run without ending it.
"""

from __future__ import annotations

import os
import time

from fault_runs.chain import chain

GATE_SECONDS = 0.02


def _slowly(function: str, number: int) -> None:
    if function != "numbers":
        return
    time.sleep(float(os.environ.get("FAULT_RUNS_MS", "0")) / 1_000)
    gate = os.environ.get("FAULT_RUNS_GATE", "")
    while gate and os.path.exists(gate):
        time.sleep(GATE_SECONDS)


app = chain(_slowly)
