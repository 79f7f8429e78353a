"""Runs the chain on a cluster of hosts, from the first start to the comparison at the end."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from uuid import uuid4

from fault_runs.chain import Record, chain_difference, write_records
from fault_runs.host_cluster import HostCluster
from fault_runs.outcome import Difference
from fault_runs.posting_client import PostingClient
from fault_runs.processes import MILLSTREAM, Started

APP = "fault_runs.chain_app:app"
SERVER_PORT = 8470
TOKEN = "a-token-of-the-fault-runs-that-is-long-enough-for-any-host"


class ClusterRun:
    """One application on a cluster: its input and output are in a folder that all hosts see, its
    store is in S3. If it is `posted`, its input comes by HTTP, to a server on the driver's host or
    to one that `serve` has started, and is in S3 too."""

    def __init__(self, cluster: HostCluster, folder: Path, *, posted: bool = False) -> None:
        self.cluster = cluster
        self.folder = folder
        self.posted = posted
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
        source = [] if self.posted else ["--source", f"records=json:{self.folder / 'in'}"]
        serving = self._serving(host) if self.posted else ["--no-serve"]
        places = [
            *source,
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
        words = [*MILLSTREAM, "run", APP, *places, *size, *spark, *where, *serving, *flags]
        return self._start(host, words)

    def serve(self, host: str) -> Started:
        """Starts `millstream serve` on a host."""
        words = [*MILLSTREAM, "serve", APP, "--store", self.address, *self._serving(host)]
        cache = {"MILLSTREAM_CACHE": str(self.cluster.hosts[host].disk / "cache")}
        return self._start(host, words, cache)

    def url(self, host: str) -> str:
        """The address of a server on a host."""
        return f"http://{self.cluster.hosts[host].address}:{SERVER_PORT}"

    def post(self, host: str, urls: Sequence[str], seed: int) -> PostingClient:
        """Starts a client on a host, which sends records to these servers until it is stopped."""
        stop = self.folder / "stop-posting"
        words = ["-m", "fault_runs.posting_client", ",".join(urls), str(seed), str(stop)]
        return PostingClient(self._start(host, words), stop)

    def _serving(self, host: str) -> list[str]:
        return ["--host", self.cluster.hosts[host].address, "--port", str(SERVER_PORT)]

    def _start(self, host: str, words: Sequence[str], environ: Mapping[str, str] = {}) -> Started:
        self._started += 1
        log = self.folder / f"said-{host}-{self._started}"
        return self.cluster.start(host, words, log, {"MILLSTREAM_TOKEN": TOKEN, **environ})

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
