"""A driver that flushes at intervals, ended with SIGKILL: the machine goes on, so nothing is lost.

What a cut of the power takes back is in tests/spark/test_flushing.py.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

from fault_runs.chain import Record, chain, chain_difference, records, settings_of, write_records
from fault_runs.outcome import Difference
from millstream.spark.runner import run
from millstream.stores.home import Home
from millstream.stores.soft import read_flushed

pytestmark = pytest.mark.spark
HERE = Path(__file__).parent
HOUR = 3_600_000_000
EVERY_BATCH = 1
"""An interval that has always passed."""


def prepared(folder: Path, seed: int) -> list[Record]:
    given = records(seed)
    write_records(folder, given)
    return given


def kill_at(folder: Path, lane: str, point: str, batch: int, flush: int) -> None:
    path = os.pathsep.join([str(HERE.parent.parent), os.environ.get("PYTHONPATH", "")])
    child = subprocess.Popen(
        [sys.executable, HERE / "flush_child.py", folder, lane, point, str(batch), str(flush)],
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": path},
        stderr=subprocess.PIPE,
    )
    _, errors = child.communicate(timeout=200)
    assert child.returncode == -signal.SIGKILL, errors.decode()


def go_on(spark: Any, folder: Path, lane: str, flush: int | None) -> list[str]:
    said: list[str] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run(chain(), settings_of(folder, lane, flush=flush), context=spark, say=said.append)
    return said


def test_a_kill_loses_nothing(spark: Any, tmp_path: Path) -> None:
    """Batches that were committed and not flushed are there after a kill, are not done again, and
    the end is the reference's."""
    given = prepared(tmp_path, 21)
    kill_at(tmp_path, "one-task", "batch-recorded", 2, HOUR)
    home = Home.open(tmp_path / "store")
    assert home.committed() == 2
    assert read_flushed(home.path).progress.batch == -1
    assert go_on(spark, tmp_path, "one-task", HOUR) == []
    assert chain_difference(tmp_path, given) == Difference(0, 0)


@pytest.mark.faults
@pytest.mark.parametrize(
    ("point", "lane", "flush"),
    [
        ("layer-commit", "shuffled", HOUR),
        ("slates-committed", "one-task", HOUR),
        ("batch-recorded", "shuffled", EVERY_BATCH),
        ("flush-begun", "one-task", EVERY_BATCH),
        ("flush-recorded", "shuffled", EVERY_BATCH),
        ("flush-published", "one-task", EVERY_BATCH),
        ("flush-published", "shuffled", EVERY_BATCH),
    ],
)
@pytest.mark.parametrize("then", [HOUR, None], ids=["interval", "batch"])
def test_at_every_point(
    spark: Any, tmp_path: Path, point: str, lane: str, flush: int, then: int | None
) -> None:
    """Ended at the point in batch 1, and started again in either way: the reference's end."""
    given = prepared(tmp_path, 22)
    kill_at(tmp_path, lane, point, 1, flush)
    assert go_on(spark, tmp_path, lane, then) == []
    assert chain_difference(tmp_path, given) == Difference(0, 0)
