"""The time from a file's arrival until its last event's slate can be read, through two updates.

One process feeds (`feed`), one runs Millstream, and this one reads as any client does: it checks
the committed batch every few milliseconds, and if there is a new one, reads the markers' slates. A
marker's time is taken after its slate was read. The first seconds are left out.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from random import Random
from typing import Any

from bench import feed, on_millstream
from bench.apart import Apart, RunFailedError, started
from bench.bench import Bench, usage_columns
from bench.figures import Bar, Outcome, percentile
from millstream.errors import StoreError
from millstream.stores.reader import SlateReader

RATE, EVERY = 4_000, 0.1
MOST = {
    "batch_p50_s_arrival": 0.040,
    "p50_s_arrival": 0.080,
    "p99_s_arrival": 0.150,
    "p99_s_event_time": 0.300,
}
POLL = 0.005
PATIENCE = 60.0
"""Seconds to wait for the first batch, and for missing markers at the end."""


def run(bench: Bench) -> Outcome:
    warm_up, seconds = (3.0, 12.0) if bench.quick else (10.0, 60.0)
    rows = [_measure(bench, order, warm_up, seconds) for order in ("arrival", "event-time")]
    figures = {
        f"{name}_{order}": row[name]
        for row, order in zip(rows, ("arrival", "event_time"), strict=True)
        for name in ("p50_s", "p99_s", "batch_p50_s")
    }
    bars = [Bar(name, figures[name], most, at_least=False) for name, most in MOST.items()]
    settings = {"rate": RATE, "file_every_s": EVERY, "seconds": seconds, "warm_up_s": warm_up}
    return Outcome("latency", rows, figures, bars, settings)


def _measure(bench: Bench, order: str, warm_up: float, seconds: float) -> dict[str, Any]:
    return measure(bench, f"two updates, {order}", "chain", order, warm_up, seconds)


def measure(
    bench: Bench,
    what: str,
    app: str,
    order: str,
    warm_up: float,
    seconds: float,
    rate: int = RATE,
    hot: float = 0.0,
) -> dict[str, Any]:
    """Measures how long markers take to be readable at a rate; the share `hot` has one key."""
    bench.say(f"  {what} ...")
    source, store, stop = (bench.fresh(f"live/{name}") for name in ("in", "store", "stop"))
    stop.unlink(missing_ok=True)
    source.mkdir()
    given = {"app": app, "order": order, "address": f"json:{source}", "store": str(store)}
    with started(on_millstream.run_until, **given, stop=str(stop)) as running:
        # The first file creates the store and warms Spark up.
        lines = feed.file_lines(Random(0), -1, 400, time.time() - 1, 0.1)
        (source / "first.json").write_text("".join(lines))
        with opened(store, running) as reader:
            # Two seconds more than measured: in event-time order, events wait for later ones.
            whole = warm_up + seconds + 2
            phases = [[rate, whole]]
            arguments = {"folder": str(source), "every": EVERY, "phases": phases, "hot": hot}
            with started(feed.feed, **arguments) as feeding:
                readable = watched(reader, feeding, running, round((warm_up + seconds) / EVERY))
                arrivals = feeding.wait()
        stop.touch()
        ran = running.wait()
    measured = range(round(warm_up / EVERY), round((warm_up + seconds) / EVERY))
    found = {n: readable[n] - arrivals[n] for n in measured if n in readable}
    row = latency_row(what, list(found.values()), len(measured), ran)
    bench.say(f"  {what}: p50 {row['p50_s']:.3f} s, p99 {row['p99_s']:.3f} s")
    return {**row, **usage_columns(asdict(running.usage))}


def latency_row(what: str, waits: list[float], files: int, ran: dict[str, Any]) -> dict[str, Any]:
    taken = [seconds for events, seconds, *_ in ran["batches"] if events]
    ages = [EVERY * step / 10 for step in range(10)]  # of a file's events when it arrives
    since_creation = [wait + age for wait in waits for age in ages]
    return {
        "what": what,
        "p50_s": percentile(waits, 0.5),
        "p99_s": percentile(waits, 0.99),
        "max_s": max(waits),
        "p99_from_creation_s": percentile(since_creation, 0.99),
        "files": files,
        "missing": files - len(waits),
        "batches": len(ran["batches"]),
        "batch_p50_s": percentile(taken, 0.5),
        "late": ran["late"],
    }


def opened(store: Path, running: Apart) -> SlateReader:
    """A reader, once the first batch is committed."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and running.running():
        try:
            reader = SlateReader(store)
            if reader.batch >= 0:
                return reader
            reader.close()
        except StoreError:
            pass  # the run has not created the store yet
        time.sleep(0.1)
    raise RunFailedError("the run committed no batch")


def watched(reader: SlateReader, feeding: Apart, running: Apart, wanted: int) -> dict[int, float]:
    """The time at which each of the first `wanted` markers was readable."""
    readable: dict[int, float] = {}
    waiting = list(range(wanted))
    for _ in _new_batches(reader, feeding, running):
        arrived = []
        for number in waiting:
            if reader.get("second", feed.marker(number)) is not None:
                readable[number] = time.time()
                arrived.append(number)
            elif len(arrived) and number > arrived[-1] + 50:
                break  # files come in order: those far after the last are not there yet
            elif not arrived and number > waiting[0] + 50:
                break
        waiting = [number for number in waiting if number not in readable]
        if not waiting:
            break
    return readable


def _new_batches(reader: SlateReader, feeding: Apart, running: Apart) -> Iterator[int]:
    """Each committed batch as it is seen, until a while after the feed has ended."""
    last, deadline = -1, 0.0
    while running.running():
        batch = reader.batch
        if batch != last:
            last = batch
            yield batch
        if feeding.running():
            deadline = time.monotonic() + PATIENCE
        elif time.monotonic() > deadline:
            return
        time.sleep(POLL)
