"""The time from the kill of a driver to the first commit of the next one.

The store has a million slates. Events come all the time. The driver's process group is killed
between two polls of the store, and the same command is started at once, while the last driver's JVM
and workers may still be ending. The time includes Spark's start, the check of the store and the
roll-back.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from bench import data, prefill
from bench.apart import RunFailedError, run_apart
from bench.bench import Bench
from bench.calibration import calibrate
from bench.figures import Bar, Outcome
from bench.machine import ROOT
from millstream.stores.home import Home

SLATES, ACTIVE, KILLS = 1_000_000, 100_000, 5
PATIENCE = 120.0


def run(bench: Bench) -> Outcome:
    slates, kills = (10_000, 1) if bench.quick else (SLATES, KILLS)
    store, source = bench.fresh("store"), bench.fresh("live/in")
    source.mkdir(parents=True)
    given = {"single": str(data.single(bench.data)), "store": str(store)}
    bench.say(f"  {slates:,} slates: filling the store ...")
    run_apart(prefill.prefill, **given, slates=slates, active=ACTIVE)
    rows: list[dict[str, Any]] = []
    _drop(source, 0)
    running = _start(store, source)
    try:
        _wait(store, Home.open(store).committed(), running)
        for number in range(kills):
            before = Home.open(store).committed()
            os.killpg(running.pid, signal.SIGKILL)
            killed = time.monotonic()
            running.wait()
            _drop(source, number + 1)
            running = _start(store, source)
            _wait(store, before, running)
            rows.append({"what": f"kill {number + 1}", "seconds": time.monotonic() - killed})
            bench.say(f"  kill {number + 1}: {rows[-1]['seconds']:.2f} s")
    finally:
        if running.poll() is None:
            os.killpg(running.pid, signal.SIGKILL)
            running.wait()
    times = sorted(row["seconds"] for row in rows)
    figures = {"recovery_s": times[len(times) // 2], "worst_s": times[-1]}
    return Outcome(
        "recovery",
        rows,
        {**figures, "calibration": calibrate()},
        [Bar("recovery_s", figures["recovery_s"], 9.0, at_least=False)],
        {"slates": slates, "kills": kills, "shards": 16},
        ["from SIGKILL to the first commit of the next driver; Spark's start included"],
    )


def _drop(source: Path, number: int) -> None:
    """Add a file with some events to the source, atomically."""
    lines = (f'{{"key":"k{n}","ts":{data.START + n},"n":0}}\n' for n in range(1_000))
    hidden = source.with_name("dropped.writing")
    hidden.write_text("".join(lines))
    hidden.rename(source / f"part-{number:03d}.json")


def _start(store: Path, source: Path) -> subprocess.Popen[bytes]:
    app = str(ROOT / "bench" / "recovery_app.py")
    command = ["run", app, "--store", str(store), "--source", f"events=json:{source}", "--no-serve"]
    return subprocess.Popen(
        [sys.executable, "-m", "millstream.cli.main", *command],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def _wait(store: Path, before: int, running: subprocess.Popen[bytes]) -> None:
    """Wait for a commit past batch `before`."""
    deadline, home = time.monotonic() + PATIENCE, Home.open(store)
    while home.committed() <= before:
        if running.poll() is not None or time.monotonic() > deadline:
            raise RunFailedError("the application ended, or committed nothing")
        time.sleep(0.01)
