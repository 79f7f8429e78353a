"""The chain, slowed down: each event of its map takes FAULT_RUNS_MS milliseconds.

The first event of a run touches the file that FAULT_RUNS_BEGAN names, which shows that a batch
runs.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from fault_runs.chain import chain


def _slowly(function: str, number: int) -> None:
    if function == "numbers":
        Path(os.environ["FAULT_RUNS_BEGAN"]).touch()
        time.sleep(int(os.environ["FAULT_RUNS_MS"]) / 1_000)


app = chain(_slowly)
