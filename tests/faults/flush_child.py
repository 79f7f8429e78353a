"""A driver that flushes at intervals, to be ended by force: FOLDER LANE POINT BATCH FLUSH."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from fault_runs.chain import chain, settings_of

if __name__ == "__main__":
    place, lane, point, batch, flush = sys.argv[1:]
    os.environ["MILLSTREAM_FAULT"] = f"{point}:{batch}:{os.getpgrp()}"
    from millstream.spark.runner import run

    run(chain(), settings_of(Path(place), lane, flush=int(flush)))
