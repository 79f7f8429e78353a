"""Feed reads over HTTP while posts come in: the application on Spark, as users start it.

The server has one core to itself; the driver with its JVM and workers, whoever posts and whoever
reads have the others.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from bench.apart import RunFailedError, begun
from bench.bench import Bench
from bench.feeds import looking
from bench.feeds.plan import Live
from bench.imr.nodes import on_cores, split_cores
from bench.imr.noise import Noise
from bench.served import served

Row = dict[str, Any]
LONGEST = 600.0
"""Seconds after which a posting process ends in any case."""


def run(bench: Bench, plan: Live) -> list[Row]:
    """Measures the times of reads."""
    own, rest = split_cores()
    store, log = bench.fresh("feeds/store"), bench.work / "feeds" / "log"
    stop = bench.work / "feeds" / "stop"
    stop.unlink(missing_ok=True)
    sizes = {"producers": plan.producers, "consumers": plan.consumers, "pairs": plan.pairs}
    with on_cores(rest), served("run", "bench/feeds/feeds_app.py", store=store, log=log) as app:
        _move(app.parts["server"], own)
        with begun(looking.fill, url=app.url, **sizes) as filling:
            filling.wait()
        bench.say(f"    {plan.pairs:,} follows taken in; posts and reads ...")
        posting = {"rate": plan.posts_per_s, "seconds": LONGEST, "stop": str(stop), **sizes}
        reading = {"parts": app.parts, "rate": plan.reads_per_s, **sizes}
        with begun(looking.post, url=app.url, **posting) as sender:
            with begun(looking.read, url=app.url, seconds=plan.warm_up, **reading) as warming:
                warming.wait()
            timed = {"url": app.url, "seconds": plan.seconds, **reading}
            with Noise() as noise, begun(looking.read, **timed) as reader:
                found = reader.wait()
            if not sender.running():
                raise RunFailedError("whoever posts ended before the reads did")
            stop.touch()
            sent = sender.wait()
    bench.fresh("feeds/store")
    return [row_of(plan, found, sent, noise.row())]


def row_of(plan: Live, found: Row, sent: Row, noise: Row) -> Row:
    """Makes the row from the results of reader and sender. Pure."""
    cores = found["cores"]
    row: Row = {
        "what": f"{plan.posts_per_s:,} posts/s, {plan.reads_per_s:,} reads/s",
        "posts_per_s": sent["per_s"],
        "reads": found["reads"],
        **{name: found[name] for name in ("p50_ms", "p95_ms", "p99_ms", "max_ms")},
        **{name: found[name] for name in ("server_p95_ms", "server_p99_ms")},
        "items": found["items"],
        "incomplete": found["incomplete"],
        "cores_server": cores.get("server"),
        "lag_events": found["lag_events"],
        "post_p99_ms": sent["p99_ms"],
        "not_200": sum(found.get("not_200", {}).values()) + sum(sent.get("not_200", {}).values()),
        "cpu_others": noise["cpu_others"],
    }
    return row


def _move(pid: int, cores: tuple[int, ...]) -> None:
    """Have all threads of a process on these cores."""
    if not cores:
        return
    for thread in Path(f"/proc/{pid}/task").iterdir():
        os.sched_setaffinity(int(thread.name), cores)
