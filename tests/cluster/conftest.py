"""One cluster of hosts for all tests that need it; each mends what the one before it broke."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fault_runs.host_cluster import HostCluster, host_cluster


@pytest.fixture(scope="session")
def one_cluster() -> Iterator[HostCluster]:
    with host_cluster() as cluster:
        yield cluster


@pytest.fixture
def cluster(one_cluster: HostCluster) -> HostCluster:
    """The cluster, in order."""
    one_cluster.mend()
    return one_cluster
