"""The cluster of hosts that all tests share. Each test repairs what the previous one broke."""

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
