"""Every fault of a service, for a seed or some: nothing is lost, doubled or out of order.

`python -m fault_runs --services --only NAME --seed N` does one of them with more kills.
"""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

import pytest

from fault_runs.scenario import Context
from fault_runs.service_faults import service_scenarios

pytestmark = pytest.mark.services
SEEDS = int(os.environ.get("MILLSTREAM_FAULT_SEEDS", "1"))
SCENARIOS = service_scenarios(short=True)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", range(1, SEEDS + 1))
@pytest.mark.parametrize("name", SCENARIOS)
def test_nothing_is_lost_or_doubled(tmp_path: Path, name: str, seed: int) -> None:
    """The servers finally have each intended record once."""
    with closing(Context()) as context:
        result = SCENARIOS[name].run(seed, tmp_path, context)
    assert not result.failed
    assert (result.lost, result.doubled) == (0, 0), result.note
