"""Every fault run, for a few seeds: nothing is lost and nothing doubled.

`python -m fault_runs --only NAME --seed N` replays one of them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from fault_runs.scenario import Context
from fault_runs.scenarios import SCENARIOS

pytestmark = [pytest.mark.spark, pytest.mark.faults]
SEEDS = int(os.environ.get("MILLSTREAM_FAULT_SEEDS", "2"))


@pytest.fixture(scope="module")
def context(spark: Any) -> Iterator[Context]:
    """The tests' own session, whose workers leave a trace already."""
    with closing(Context(spark, Path(os.environ["MILLSTREAM_TRACE"]))) as shared:
        yield shared


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("name", SCENARIOS)
def test_nothing_is_lost_or_doubled(context: Context, tmp_path: Path, name: str, seed: int) -> None:
    """Slates, output and dead letters are those of the reference, each once."""
    result = SCENARIOS[name].run(seed, tmp_path, context)
    if result.note.startswith("skipped"):
        pytest.xfail(result.note)  # the machine cannot be disturbed in this way: it is said
    assert not result.failed
    assert (result.lost, result.doubled) == (0, 0), result.note
    assert result.runs > 0
