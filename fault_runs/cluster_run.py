"""Runs the chain on a cluster of hosts, from the first start to the comparison at the end."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from uuid import uuid4

from fault_runs.chain import Record, chain_difference, write_records
from fault_runs.host_cluster import HostCluster
from fault_runs.outcome import Difference
from fault_runs.processes import MILLSTREAM, Started

APP = "fault_runs.chain_app:app"


class ClusterRun:
    """One application on a cluster: its input and output are in a folder that all hosts see, its
    store is in S3."""

    def __init__(self, cluster: HostCluster, folder: Path) -> None:
        self.cluster = cluster
        self.folder = folder
        self.address = cluster.address(f"run-{uuid4().hex[:8]}")
        """The address of the store."""
        self._started = 0
        self._gate = folder / "gate"
        (folder / "in").mkdir(parents=True, exist_ok=True)

    def give(self, records: Sequence[Record], a_file: int = 100) -> None:
        """Write input."""
        write_records(self.folder, records, a_file)

    def hold(self) -> None:
        """Make tasks wait before the next event, until `release`; the driver keeps its lead."""
        self._gate.touch()

    def release(self) -> None:
        self._gate.unlink(missing_ok=True)

    def start(
        self, host: str = "driver", *flags: str, event_ms: float = 0.0, shipped: bool = False
    ) -> Started:
        """Starts `millstream run` on a host. With `shipped`, executors have only the code that the
        run ships to them, which takes them some seconds to unpack."""
        cluster = self.cluster
        places = [
            *("--source", f"records=json:{self.folder / 'in'}"),
            *("--sink", f"alerts=json:{self.folder / 'out' / 'alerts'}"),
            *("--store", self.address),
        ]
        size = [
            "--shards",
            "6",
            "--tasks",
            "3",
            "--lane",
            "shuffled",
            "--batch-bytes",
            "4000",
            "--memory",
            "512m",
        ]
        conf = {
            "spark.cores.max": "3",
            "spark.executor.cores": "1",
            "spark.executorEnv.FAULT_RUNS_MS": str(event_ms),
            "spark.executorEnv.FAULT_RUNS_GATE": str(self._gate),
        }
        spark = [word for name, value in conf.items() for word in ("--conf", f"{name}={value}")]
        where = [
            *("--master", cluster.url, "--listen", cluster.hosts[host].address),
            *("--secret-file", str(cluster.secret_file)),
        ]
        if shipped:
            where += ["--python", cluster.bare_python, "--runtime", str(cluster.runtime(APP))]
        else:
            where += ["--python", sys.executable, "--runtime", "installed"]
        words = [*MILLSTREAM, "run", APP, *places, *size, *spark, *where, "--no-serve", *flags]
        self._started += 1
        return cluster.start(host, words, self.folder / f"said-{host}-{self._started}")

    @property
    def _objects(self) -> Path:
        """The folder of the store's objects on the S3 server's disk."""
        return self.cluster.hosts["s3"].disk / "objects" / self.address.removeprefix("s3://")

    def newest_commit(self) -> int:
        """The number of the newest commit, read from the S3 server's disk; -1 if there is none."""
        try:
            commits = (self._objects / "commits").iterdir()
            return max((int(entry.name) for entry in commits), default=-1)
        except (FileNotFoundError, ValueError):
            return -1

    def leader_silence(self) -> float:
        """Seconds since the leader's last heartbeat or commit, by the S3 server's disk."""
        newest = self._objects / "commits" / f"{self.newest_commit():012d}"
        signs = [path.stat().st_mtime for path in (self._objects / "leader", newest)]
        return time.time() - max(signs)

    def difference(self, given: Sequence[Record]) -> Difference:
        """The difference between the store and the reference over the records."""
        store = self.folder / "store"
        shutil.rmtree(store, ignore_errors=True)
        words = ["-m", "fault_runs.store_mirror", self.address, str(store)]
        mirror = self.cluster.start("reader", words, self.folder / "said-reader")
        if mirror.wait() != 0:
            raise AssertionError(f"the store cannot be read: {mirror.said()}")
        return chain_difference(self.folder, given)
