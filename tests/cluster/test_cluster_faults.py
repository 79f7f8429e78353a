"""Every fault of a cluster, for a few seeds: nothing is lost and nothing doubled.

To start Spark on hosts takes longer than a fault; so they strike in three runs, one after the
other.
`python -m fault_runs --cluster --only NAME --seed N` lets one of them strike several times.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from fault_runs.cluster_faults import MIXED_SCENARIOS
from fault_runs.host_cluster import HostCluster
from fault_runs.scenario import Context

pytestmark = pytest.mark.cluster
SEEDS = int(os.environ.get("MILLSTREAM_FAULT_SEEDS", "1"))


@pytest.fixture
def context(one_cluster: HostCluster) -> Iterator[Context]:
    """The tests' own cluster."""
    with closing(Context(hosts=one_cluster)) as shared:
        yield shared


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("name", MIXED_SCENARIOS)
def test_nothing_is_lost_or_doubled(context: Context, tmp_path: Path, name: str, seed: int) -> None:
    """Each fault strikes, and slates, output and dead letters are those of the reference, each
    once."""
    scenario = MIXED_SCENARIOS[name]
    result = scenario.run(seed, tmp_path, context)
    assert (result.lost, result.doubled) == (0, 0), result.note
    assert result.runs == scenario.least, result.note
