"""A run on a standalone cluster whose workers have addresses of their own on this machine."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cluster.cluster_app import (
    SHARDS,
    expected,
    put,
    records,
    settings,
    shards_of,
    stored,
    two_layers,
)

from fault_runs.cluster import Cluster, cluster
from millstream.driver.report import BatchSummary
from millstream.spark import executors
from millstream.spark.runner import run

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def one_cluster() -> Iterator[Cluster]:
    """Workers that are hosts with disks of their own, and that can be drained."""
    drained = {"spark.decommission.enabled": "true"}
    with cluster(workers=2, hosts=True, defaults=drained) as made:
        yield made


@pytest.fixture
def hosts(one_cluster: Cluster) -> Cluster:
    """Two workers with empty disks."""
    for number in [*one_cluster.workers][:-2]:
        one_cluster.kill_worker(number)
    for _ in range(2 - len(one_cluster.workers)):
        one_cluster.start_worker()
    for number in one_cluster.workers:
        shutil.rmtree(one_cluster.cache_of(number), ignore_errors=True)
    return one_cluster


def test_a_shards_task_stays_on_the_host_of_its_copy(
    hosts: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over many batches with two layers and feedback, each shard's copy is on one host alone, and
    both hosts have as many; the slates are the reference's.

    A host may be slow here: it is waited for, at the start and by each task.
    """
    monkeypatch.setattr(executors, "SETTLED_SECONDS", 8.0)
    lines = records(2_000)
    for number in range(10):
        put(tmp_path / "in", f"{number}.json", lines[number * 200 : number * 200 + 200])
    patient = {"spark.locality.wait": "60s"}
    given = settings(tmp_path, hosts.url, batch_bytes=5_000, spark=patient)
    summary = run(two_layers(), given)
    assert summary.batches > 10
    assert stored(tmp_path) == expected(lines)
    first, second = (shards_of(hosts.cache_of(number)) for number in hosts.workers)
    assert first | second == set(range(SHARDS))
    assert not first & second
    assert len(first) == len(second)


def test_an_executor_that_dies_between_layers(hosts: Cluster, tmp_path: Path) -> None:
    """In the middle of the second layer an executor is killed, and with it the first layer's
    output: both are run again elsewhere, and nothing is lost or counted twice."""
    lines = records(1_000)
    lines[450]["kill"] = str(tmp_path / "killed")
    for number in range(5):
        put(tmp_path / "in", f"{number}.json", lines[number * 200 : number * 200 + 200])
    before = hosts.executors()
    run(two_layers(), settings(tmp_path, hosts.url, batch_bytes=5_000, lane="shuffled"))
    assert (tmp_path / "killed").exists()
    assert not before, "the executors of a run end with it"
    assert stored(tmp_path) == expected(lines)


def test_hosts_that_go_and_come_move_only_their_own_shards(hosts: Cluster, tmp_path: Path) -> None:
    """A host that is switched off loses its shards to the other, which keeps its own. A new host
    gets some, a few at a time. A drained host hands its shards over, and then has no executor.
    Batches continue all the time."""
    lost, drained = hosts.workers
    with Live(tmp_path, hosts) as live:
        live.feed_until(lambda: live.shards(lost) and live.shards(drained))
        live.feed(400)
        first, second = live.shards(lost), live.shards(drained)
        hosts.kill_worker(lost)
        live.feed(400)
        assert live.shards(drained) == first | second
        new = hosts.start_worker()
        live.feed_until(lambda: live.shards(new))
        assert len(live.shards(new)) <= SHARDS // 2
        hosts.drain_worker(drained)
        live.feed_until(lambda: not hosts.executors_of(drained))
        live.feed(400)
        assert live.shards(new) == first | second
    hosts.kill_worker(drained)
    run(two_layers(), settings(tmp_path, hosts.url))  # words that the last batch sent back
    assert stored(tmp_path) == expected(live.lines)


class Live:
    """A run that goes on while the test feeds it."""

    def __init__(self, folder: Path, machines: Cluster) -> None:
        self.lines: list[dict[str, object]] = []
        self._folder, self._machines = folder, machines
        self._stop, self._taken = threading.Event(), 0
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Live:
        (self._folder / "in").mkdir()
        self._thread.start()
        return self

    def _run(self) -> None:
        given = settings(self._folder, self._machines.url, available_now=False)
        try:
            run(two_layers(), given, self._count, stop=self._stop)
        except BaseException as error:
            self._error = error

    def _count(self, batch: BatchSummary) -> None:
        self._taken += batch.events

    def feed(self, count: int) -> None:
        """Put records in, and wait until they are counted."""
        more = records(count, len(self.lines) + 1)
        self.lines += more
        put(self._folder / "in", f"{len(self.lines):06}.json", more)
        self._wait(lambda: self._taken >= len(self.lines))

    def feed_until(self, done: Callable[[], object]) -> None:
        """Put records in, a few at a time, until it is so."""
        deadline = time.monotonic() + 120
        while not done():
            assert time.monotonic() < deadline
            self.feed(20)

    def shards(self, number: int) -> set[int]:
        return shards_of(self._machines.cache_of(number))

    def _wait(self, done: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 120
        while not done():
            assert self._thread.is_alive(), self._error
            assert time.monotonic() < deadline
            time.sleep(0.05)

    def __exit__(self, *exc: object) -> None:
        self._stop.set()
        self._thread.join(60)
        assert self._error is None
