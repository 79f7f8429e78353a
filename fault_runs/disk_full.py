"""The store's disk fills up in the middle of a run, and is freed later.

The disk is a tmpfs of a few MiB in the mount namespace of a separate process, with its own Spark:
`python -m fault_runs.disk_full FOLDER SEED`. A ballast file takes the remaining space at these
moments:

- while events are sent over HTTP: events that are not on disk must be refused, never acknowledged;
- at each point of a batch: before the shards commit, before the batch is recorded, before the sinks
  publish, after they have, during the next batch.

A run that stops must say that the disk is full. Then the disk is freed, and the application is
started again (or it has waited, and goes on). If namespaces are not allowed, this scenario is
skipped and does not count as a run.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from dataclasses import asdict
from pathlib import Path
from random import Random

import httpx

from fault_runs.hooks import at_points
from fault_runs.ledger import (
    OnReport,
    Record,
    differing,
    encoded,
    entries,
    events_of,
    ledger,
    outcome_of,
    settings_of,
    until_done,
)
from fault_runs.result import Result
from fault_runs.scenario import Context, Scenario
from fault_runs.serving import make_store, served

FAULT = "disk-full"
APART = ("unshare", "-rm")
"""Runs a command as root of its own namespaces."""
DISK_BYTES = 8 << 20
COUNT, A_REQUEST = 900, 60
POINTS = ("batch-start", "slates-committed", "batch-recorded", "sinks-published")
FULL_SECONDS = 3.0
"""Seconds for which the disk stays full if the run waits instead of stopping."""
PAGE = 4096


def disk_full(seed: int, folder: Path, context: Context) -> Result:
    """Nothing acknowledged is lost, nothing is doubled."""
    return on_a_disk_apart(FAULT, "fault_runs.disk_full", seed, folder)


def on_a_disk_apart(fault: str, module: str, seed: int, folder: Path) -> Result:
    """Run a module that may mount a disk of its own, and read the result that it leaves."""
    reason = not_allowed(folder)
    if reason:
        return Result(fault, seed, 0, 0, note=f"skipped: {reason}", runs=0)
    done = subprocess.run(
        [*APART, sys.executable, "-m", module, str(folder), str(seed)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        stderr=subprocess.PIPE,
        timeout=300,
    )
    if done.returncode:
        return Result(fault, seed, 0, 0, failed=done.stderr.decode(errors="replace")[-1500:])
    told = json.loads((folder / "result.json").read_text())
    return Result(**{**told, "recovery_s": tuple(told["recovery_s"])})


def not_allowed(folder: Path) -> str:
    """The reason why no disk can be mounted here; empty if it can."""
    try:
        tried = subprocess.run(
            [*APART, "mount", "-t", "tmpfs", "none", str(folder)], capture_output=True, timeout=20
        )
    except FileNotFoundError as error:
        return f"{error.filename} is not installed"
    return tried.stderr.decode(errors="replace").strip() if tried.returncode else ""


class Disk:
    """A small file system that can be filled up and freed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._ballast = path / "ballast"
        self._timer: threading.Timer | None = None
        path.mkdir()
        options = f"size={DISK_BYTES}"
        subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", str(path)], check=True)

    def fill(self, pages_left: int, seconds: float | None = None) -> None:
        """Take all space but `pages_left` pages, until it is freed, or for `seconds` at most."""
        file = os.open(self._ballast, os.O_CREAT | os.O_WRONLY, 0o644)
        size = 0
        try:
            while True:
                size += os.write(file, bytes(PAGE))
        except OSError:
            os.ftruncate(file, max(0, size - pages_left * PAGE))
        finally:
            os.close(file)
        if seconds is not None:
            self._timer = threading.Timer(seconds, self._ballast.unlink, (True,))
            self._timer.start()

    def free(self) -> None:
        """Free the space."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer.join()
        self._ballast.unlink(missing_ok=True)


def _main(folder: Path, seed: int) -> Result:
    """Everything that happens on the disk, which is gone when this process ends."""
    from millstream.spark.context import open_context
    from millstream.spark.runner import run

    random, app = Random(seed), ledger("entries")
    disk = Disk(folder / "disk")
    given = entries(random, COUNT)
    settings = settings_of(disk.path, {"entries": "log"}, lane=random.choice(["one-task", "auto"]))
    make_store(app, settings.storage.store, 3)
    refused = _send(random, disk, settings.storage.store, given)
    strikes = [(point, random.randrange(2)) for point in random.sample(POINTS, len(POINTS))]

    def strike(point: str, batch: int) -> None:
        if strikes and strikes[0][0] == point:
            if strikes[0][1]:
                strikes[0] = point, strikes[0][1] - 1
                return
            strikes.pop(0)
            disk.fill(random.choice([0, 0, 1, 3]), FULL_SECONDS)

    spark, said = open_context("disk-full", "local[2]", "1g"), list[str]()

    def start(report: OnReport) -> None:
        disk.free()
        run(app, settings, report, context=spark, say=said.append)

    with at_points(strike):
        starts = until_done(start)
    found = differing(app, events_of("entries", given), outcome_of(app, disk.path))
    waited = sum("trying again" in sentence for sentence in said)
    stopped = len(starts.stopped)
    note = (
        f"{refused} requests refused, stopped {stopped}, waited {waited}, {settings.batches.lane}"
    )
    unclear = [error for error in starts.stopped if not _says_so(error, disk)]
    failed = f"it did not say that the disk is full: {unclear[0]}" if unclear else ""
    if strikes:
        failed = f"the run ended before the disk was full at {strikes}"
    return Result(
        FAULT,
        seed,
        found.lost,
        found.doubled,
        tuple(starts.recovery),
        "; ".join(filter(None, (note, found.note))),
        1 + stopped + waited,
        failed,
    )


def _says_so(error: str, disk: Disk) -> bool:
    """True if the error says that the disk is full.

    LMDB sees a short write to a full disk as an I/O error: its message names both.
    """
    full = "No space left on device" in error or "the disk or its quota is full" in error
    return full and str(disk.path) in error


def _send(random: Random, disk: Disk, store: Path, given: list[Record]) -> int:
    """Send all entries over HTTP, some while the disk is full; returns the refused requests."""
    requests = []
    for start in range(0, len(given), A_REQUEST):
        body = b"\n".join(encoded(given[start : start + A_REQUEST]))
        requests.append((f"request-{start}", body))
    full = random.randrange(1, len(requests) - 5)
    refused = []
    with served(store) as server, httpx.Client(base_url=server.url) as client:
        for number, request in enumerate(requests):
            if number == full:
                disk.fill(random.choice([0, 1]))
            status = _post(client, *request)
            if full <= number < full + 4 and status == 507:
                refused.append(request)
            elif status != 200:
                raise AssertionError(f"request {number}: answered with {status}")
            if number == full + 3:
                disk.free()
        if not refused:
            raise AssertionError("the disk was not full: no request was refused")
        for request in refused:
            assert _post(client, *request) == 200
    return len(refused)


def _post(client: httpx.Client, key: str, body: bytes) -> int:
    headers = {"Content-Type": "application/x-ndjson", "Idempotency-Key": key}
    return client.post("/streams/entries", content=body, headers=headers).status_code


DISK_FULL = Scenario(
    FAULT, "what does not fit is refused or waits; started again, all is there once", disk_full
)

if __name__ == "__main__":
    place = Path(sys.argv[1])
    (place / "result.json").write_text(json.dumps(asdict(_main(place, int(sys.argv[2])))))
