"""Readers on hosts of their own take events and answer for an application on another host, with
nothing between them but S3."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest

from fault_runs.host_cluster import HostCluster
from fault_runs.processes import MILLSTREAM, Started, wait_until

pytestmark = pytest.mark.cluster
APP = "fault_runs.sent_app:app"
TOKEN = "a-token-of-the-tests-that-is-long-enough-for-any-host"
PORT = 8470
READERS = ("reader", "standby")
CLIENT = """
import os, sys, time
from itertools import count
from pathlib import Path
from millstream.client import Client

urls, done = sys.argv[1:]
with Client(urls, token=os.environ["MILLSTREAM_TOKEN"], timeout=2.0, retries=None) as client:
    sent = []
    for number in count():
        ids = [f"{number}-{n}" for n in range(10)]
        client.send("events", [{"id": id} for id in ids])
        sent += ids
        print(f"sent {len(sent)} over {client.url}", flush=True)
        if Path(done).exists():
            break
        time.sleep(0.1)
    while len(found := {slate.key: slate.value["n"] for slate in client.scan("count")}) < len(sent):
        time.sleep(0.1)
    assert found == dict.fromkeys(sent, 1), found
    print(f"all {len(sent)} counted once", flush=True)
    Path(done).unlink()
    while not Path(done).exists():
        time.sleep(0.1)
    assert client.get("count", sent[0]).value == {"n": 1}
    client.send("events", [{"id": "later"}])
    print("answers without the application", flush=True)
"""


def start_run(cluster: HostCluster, store: str, folder: Path) -> Started:
    words = [*MILLSTREAM, "run", APP, "--store", store, "--no-serve", "--memory", "512m"]
    words += ["--master", cluster.url, "--listen", cluster.hosts["driver"].address]
    words += ["--secret-file", str(cluster.secret_file), "--shards", "6", "--tasks", "2"]
    words += ["--python", sys.executable, "--runtime", "installed"]
    words += ["--conf", "spark.cores.max=2", "--conf", "spark.executor.cores=1"]
    return cluster.start("driver", words, folder / "said-driver")


def start_reader(cluster: HostCluster, name: str, store: str, folder: Path) -> Started:
    host = cluster.hosts[name]
    words = [*MILLSTREAM, "serve", APP, "--store", store, "--host", host.address]
    environ = {"MILLSTREAM_TOKEN": TOKEN, "MILLSTREAM_CACHE": str(host.disk / "cache")}
    return cluster.start(name, [*words, "--port", str(PORT)], folder / f"said-{name}", environ)


def test_events_go_to_any_reader_and_answers_come_from_any(
    cluster: HostCluster, tmp_path: Path
) -> None:
    """Events that are sent to a reader are counted once by the application on another host, and its
    slates are read there; a client goes on with the next reader when the host of one is cut off.
    When the application has ended, readers answer and take events all the same."""
    store = cluster.address(f"readers-{tmp_path.name}")
    readers = [start_reader(cluster, name, store, tmp_path) for name in READERS]
    driver = start_run(cluster, store, tmp_path)
    for reader in readers:
        assert wait_until(lambda log=reader.log: "serving" in log.read_text(), reader)  # type: ignore[misc]
    (tmp_path / "client.py").write_text(CLIENT)
    urls = ",".join(f"http://{cluster.hosts[name].address}:{PORT}" for name in READERS)
    words = [str(tmp_path / "client.py"), urls, str(tmp_path / "done")]
    client = cluster.start("master", words, tmp_path / "said", {"MILLSTREAM_TOKEN": TOKEN})

    def says(words: str) -> None:
        assert wait_until(lambda: words in client.log.read_text(), client), client.said()

    first, second = (f"http://{cluster.hosts[name].address}:{PORT}" for name in READERS)
    says(f"over {first}")
    cluster.hosts["reader"].cut_off()
    says(f"over {second}")
    (tmp_path / "done").touch()
    says("counted once")
    driver.process.send_signal(signal.SIGTERM)
    assert driver.wait(60) == 0, driver.said()
    (tmp_path / "done").touch()
    says("answers without the application")
    assert client.wait(30) == 0, client.said()
