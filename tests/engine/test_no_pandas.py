"""A worker does not import pandas for updates and aggregates: it takes 30 MiB, and time at the
first batch."""

from __future__ import annotations

import subprocess
import sys

RUN = """
import sys
import millstream as ms
from engine.in_process import InProcess
from millstream.engine.intake import iso_times

app = ms.App("counted")
app.source("s")

@app.update("s")
def count(event, slate):
    slate["n"] = slate.get("n", 0) + 1

app.aggregate("s", algebra=ms.algebra.count(), name="counts")
app.aggregate("s", algebra=ms.algebra.sum(), name="sums")

for lane in ("one-task", "shuffled"):
    run = InProcess(app.workflow(), lane=lane)
    run.batch([ms.Event("s", n, f"k{n % 40}", 1) for n in range(200)])
    run.batch([ms.Event("s", n, f"k{n % 40}", 1) for n in range(200)])
assert len(iso_times(["2012-05-27T02:00:02Z"] * 200)) == 200
assert "pandas" not in sys.modules
"""


def test_updates_run_without_pandas() -> None:
    """In either lane."""
    subprocess.run([sys.executable, "-c", RUN], check=True, cwd=__file__.rpartition("/engine/")[0])
