"""A Spark cluster of hosts with addresses of their own, and S3 on another."""

from __future__ import annotations

from pathlib import Path

import pytest

from fault_runs.chain import records
from fault_runs.cluster_run import ClusterRun
from fault_runs.host_cluster import WORKERS, HostCluster

pytestmark = pytest.mark.cluster


def test_an_application_runs_on_the_cluster(cluster: HostCluster, tmp_path: Path) -> None:
    """Its store is in S3 and its tasks are on three hosts with disks of their own, whose Python has
    none of its code and none of ours; slates, output and dead letters are those of the reference,
    each once."""
    given = records(5, 600)
    run = ClusterRun(cluster, tmp_path)
    run.give(given)
    running = run.start("driver", "--available-now", "--final", shipped=True)
    assert running.wait(200) == 0, running.said()
    found = run.difference(given)
    assert (found.lost, found.doubled) == (0, 0), found.note
    for name in WORKERS:
        assert list((cluster.hosts[name].disk / "cache").glob("**/data.mdb")), f"{name} did nothing"
