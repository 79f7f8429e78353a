"""The fixed cost of a run: `millstream run` over a hundred events, from start to end.

It is compared with a Spark program in Python that only opens a SparkContext and runs one job
(`bare_spark`): with pyspark's defaults, to which the bar applies, and with Millstream's settings of
the JVM and one task. The defaults start more slowly than those settings, so a ratio below 1 is no
surprise: the ratio to the tuned program shows what Millstream itself adds. All are processes as
users start them, measured in turn, from their start to their end. The ratios are those of the
medians.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from bench.apart import RunFailedError
from bench.bare_spark import EVENTS
from bench.bench import Bench
from bench.calibration import calibrate
from bench.data import START
from bench.figures import Bar, Outcome
from bench.machine import ROOT
from bench.processes import Sampler
from millstream.stores.home import Home
from millstream.stores.progress import decoded

ROUNDS = 7
MILLSTREAM, BARE, TUNED = "millstream run", "bare Spark", "bare Spark, tuned"
WAYS = (MILLSTREAM, BARE, TUNED)
MOST = 1.4
"""The highest ratio to the time of the bare program."""
PATIENCE = 120.0


def run(bench: Bench) -> Outcome:
    rounds = 1 if bench.quick else ROUNDS
    source = _source(bench)
    taken: dict[str, list[float]] = {way: [] for way in WAYS}
    others: dict[str, list[float]] = {way: [] for way in WAYS}
    for number in range(rounds):
        store = bench.fresh("store")
        bare = ["-m", "bench.bare_spark"]
        commands = {MILLSTREAM: _millstream(store, source), BARE: bare, TUNED: [*bare, "tuned"]}
        # The order changes from round to round, so that none always has the warmer machine.
        first = number % len(WAYS)
        for what in (*WAYS[first:], *WAYS[:first]):
            seconds, share = _timed(bench, what, commands[what])
            taken[what].append(seconds)
            others[what].append(share)
        _check(store)
        last = ", ".join(f"{what} {times[-1]:.2f} s" for what, times in taken.items())
        bench.say(f"  round {number + 1} of {rounds}: {last}")
    rows = [_row(what, times, others[what]) for what, times in taken.items()]
    figures = {
        "ratio": median(taken[MILLSTREAM]) / median(taken[BARE]),
        "millstream_s": median(taken[MILLSTREAM]),
        "bare_s": median(taken[BARE]),
        "ratio_tuned": median(taken[MILLSTREAM]) / median(taken[TUNED]),
        "tuned_s": median(taken[TUNED]),
        "calibration": calibrate(),
    }
    return Outcome(
        "startup",
        rows,
        figures,
        [Bar("ratio", figures["ratio"], MOST, at_least=False)],
        {"events": EVENTS, "rounds": rounds},
        [
            "ratio: medians of whole processes, from their start to their end, measured in turn",
            "ratio_tuned: the same to a program with Millstream's settings of the JVM; no bar",
        ],
    )


def _source(bench: Bench) -> Path:
    """A folder with one file of a hundred events."""
    folder = bench.fresh("startup/in")
    folder.mkdir(parents=True)
    lines = (f'{{"key":"k{n}","ts":{START + n},"n":0}}\n' for n in range(EVENTS))
    (folder / "part-0.json").write_text("".join(lines))
    return folder


def _millstream(store: Path, source: Path) -> list[str]:
    app = str(ROOT / "bench" / "recovery_app.py")
    places = ["--store", str(store), "--source", f"events=json:{source}"]
    return ["-m", "millstream.cli.main", "run", app, *places, "--available-now"]


def _timed(bench: Bench, what: str, arguments: Sequence[str]) -> tuple[float, float]:
    """Seconds from the start of a process to its end, and the share of the machine for others."""
    log = bench.work / "startup" / "log"
    with log.open("wb") as said:
        began = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, *arguments],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            env={**os.environ, "PYSPARK_PYTHON": sys.executable},
        )
        try:
            with Sampler(process.pid) as usage:
                status = process.wait(PATIENCE)
                seconds = time.perf_counter() - began
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
    if status != 0:
        told = log.read_text(errors="replace")[-2_000:]
        raise RunFailedError(f"{what} ended with status {status}: {told}")
    return seconds, usage.cpu_others


def _check(store: Path) -> None:
    """Check that the run has processed all events."""
    events = decoded(Home.open(store).read_progress()).events
    if events != EVENTS:
        raise RunFailedError(f"the run took in {events} events, not {EVENTS}")


def _row(what: str, seconds: list[float], others: list[float]) -> dict[str, Any]:
    return {
        "what": what,
        "median_s": median(seconds),
        "least_s": min(seconds),
        "most_s": max(seconds),
        "each": " ".join(f"{one:.2f}" for one in seconds),
        "cpu_others": round(median(others), 2),
    }
