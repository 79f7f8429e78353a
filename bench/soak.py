"""Twenty minutes at half of the top rate: does memory or disk usage grow?

The top rate is measured first, in the same run: the events accepted over HTTP in half a minute,
divided by the time until the last one is processed. Then half of that rate is sent for twenty
minutes. Keys change slowly, so that slates expire and are swept while others come. Memory is the
anonymous memory of the processes, disk the size of the store's files. Each counts as flat if the
median of the last fifth of the time is at most that of the second fifth plus a tolerance; in the
first fifth the logs fill up to their retention.
"""

from __future__ import annotations

import time
from pathlib import Path
from statistics import median
from typing import Any

from bench import sending
from bench.apart import Apart, begun
from bench.bench import Bench
from bench.data import size_of
from bench.figures import Bar, Outcome
from bench.machine import ROOT
from bench.meter import caught_up
from bench.processes import below, processes
from bench.served import Served, served

EVERY, BEAT, KEYS = 5.0, 0.05, 20_000
TOLERANCE = 1.1


def run(bench: Bench) -> Outcome:
    top_s, soak_s = (5.0, 30.0) if bench.quick else (30.0, 1_200.0)
    store, stop = bench.fresh("store"), bench.work / "soak.stop"
    stop.unlink(missing_ok=True)
    app = str(ROOT / "bench" / "soak_app.py")
    with served("run", app, store=store, log=bench.work / "soak.log") as running:
        sending.fill(running.url, KEYS, 500)
        given = {"url": running.url, "parts": running.parts, "keys": KEYS}
        bench.say("  the top rate ...")
        with begun(sending.post_closed, **given, connections=2, batch=500, seconds=top_s) as sent:
            found = sent.wait()
        top = found["accepted"] / (top_s + found["caught_up_s"])
        rate = round(top / 2)
        bench.say(f"  top rate {top:,.0f} events/s; {soak_s / 60:g} minutes at {rate:,} ...")
        with begun(
            sending.feed,
            url=running.url,
            rate=rate,
            every=BEAT,
            seconds=soak_s,
            keys=KEYS,
            stop=str(stop),
            drift=KEYS // 100,
        ) as feeding:
            samples = _watch(bench, running, store, feeding)
            fed = feeding.wait()
        behind = time.monotonic()
        caught_up(running.url)
        behind = time.monotonic() - behind
    return _outcome(samples, top, rate, fed, behind, soak_s)


def _watch(bench: Bench, app: Served, store: Path, feeding: Apart) -> list[dict[str, float]]:
    samples: list[dict[str, float]] = []
    began = last = time.monotonic()
    while feeding.running():
        time.sleep(EVERY)
        family = below(app.parts["driver"], processes())
        at = time.monotonic()
        sample = {
            "at_s": at - began,
            "jvm_mib": sum(p.anonymous for p in family if p.name == "java"),
            "python_mib": sum(p.anonymous for p in family if p.name != "java"),
            "disk_mib": size_of(store) / 2**20,
        }
        samples.append(sample)
        if at - last >= 60:
            last = at
            told = ", ".join(f"{name} {value:,.0f}" for name, value in sample.items())
            bench.say(f"    {told}")
    return samples


def _outcome(
    samples: list[dict[str, float]],
    top: float,
    rate: int,
    fed: dict[str, Any],
    behind: float,
    seconds: float,
) -> Outcome:
    fifth = max(1, len(samples) // 5)
    rows: list[dict[str, Any]] = []
    for number in range(5):
        part = samples[number * fifth : (number + 1) * fifth] or samples[-1:]
        row: dict[str, Any] = {"what": f"fifth {number + 1}"}
        for name in ("jvm_mib", "python_mib", "disk_mib"):
            row[name] = median(sample[name] for sample in part)
        rows.append(row)
    figures = {"top_per_s": top, "rate": fed["per_s"], "behind_s": behind}
    bars = [Bar("rate_of_asked", fed["per_s"] / rate, 0.98)]
    figures["rate_of_asked"] = fed["per_s"] / rate
    for name in ("jvm", "python", "disk"):
        figures[f"{name}_growth"] = rows[-1][f"{name}_mib"] / rows[1][f"{name}_mib"]
        growth = figures[f"{name}_growth"]
        bars.append(Bar(f"{name}_growth", growth, TOLERANCE, at_least=False))
    return Outcome(
        "soak",
        rows,
        figures,
        bars,
        {"seconds": seconds, "rate": rate, "keys": KEYS, "retain_bytes": "8MiB", "ttl": "30s"},
        [
            "growth: the last fifth of the time against the second",
            f"behind at the end: {behind:.1f} s until the last event was processed",
        ],
    )
