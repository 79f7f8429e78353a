"""Dumps all slates of an update over HTTP, from a store of a million and from one of a tenth.

The stores are filled through the shard contract, without Spark, and served with `millstream serve`.
This process reads the dump and counts its lines, while a thread samples the server's memory.
*Anonymous* memory is the server's own; the rest of the resident memory are pages of the store's
files, which the system can reclaim.
"""

from __future__ import annotations

import http.client
import json
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median
from typing import Any, NamedTuple

from bench.apart import RunFailedError
from bench.bench import Bench
from bench.calibration import calibrate
from bench.data import size_of
from bench.figures import Bar, Outcome
from bench.lean import address
from bench.prefill import UPDATE, fill_store
from bench.processes import process
from bench.served import served
from bench.spent import shares, spent

SIZES = (100_000, 1_000_000)
ROUNDS = 3
LOOK_EVERY = 0.01
TAKE = 1 << 18


def run(bench: Bench) -> Outcome:
    sizes = (10_000, 100_000) if bench.quick else SIZES
    return run_sizes(bench, sizes, rounds=ROUNDS)


def run_sizes(bench: Bench, sizes: tuple[int, ...], rounds: int) -> Outcome:
    speed = calibrate()
    rows = [_measure(bench, size, rounds) for size in sizes]
    more = rows[-1]["anon_max_mib"] - rows[0]["anon_max_mib"]
    figures = {
        "slates_per_s": rows[-1]["slates_per_s"],
        "seconds": rows[-1]["seconds"],
        "anon_more_mib": more,
        "calibration": speed,
    }
    return Outcome(
        "dump",
        rows,
        figures,
        [Bar("anon_more_mib", more, 8, at_least=False)],
        {"sizes": list(sizes), "rounds": rounds, "shards": 16},
        [
            "seconds, slates_per_s: medians of the rounds; memory: before the first and the most "
            "in all, of the server's process",
            "anon_more_mib: how much more memory of its own the server takes for the larger store",
            "calibration: million steps/s of plain Python on one core (bench/calibration.py)",
        ],
    )


def _measure(bench: Bench, slates: int, rounds: int) -> dict[str, Any]:
    bench.say(f"  {slates:,} slates: filling the store ...")
    store, log = bench.fresh("served/store"), bench.work / "served" / "log"
    fill_store(store, slates)
    seconds = []
    with served("serve", store=store, log=log) as server:
        pid = server.parts["server"]
        read_slate(server.url)  # so that the store is open before its memory is measured
        memory, began = Memory.of(pid), spent(server.parts)
        with watched(pid) as most:
            for _ in range(rounds):
                found = read_dump(server.url)
                if found.slates != slates:
                    raise RunFailedError(f"the dump has {found.slates} slates, not {slates}")
                seconds.append(found.seconds)
        ended = spent(server.parts)
    cores = shares(began, ended)
    row = {
        "what": f"{slates:,} slates",
        "seconds": median(seconds),
        "slates_per_s": slates / median(seconds),
        "mib_per_s": found.bytes / 2**20 / median(seconds),
        "first_ms": found.first * 1_000,
        "server_us": (ended.parts["server"] - began.parts["server"]) / rounds / slates * 1e6,
        "anon_before_mib": memory.anonymous,
        "anon_max_mib": most[0].anonymous,
        "rss_before_mib": memory.resident,
        "rss_max_mib": most[0].resident,
        "disk_mib": size_of(store / "shards") / 2**20,
        "cores_server": cores["server"],
        "cores_load": cores["load"],
        "cpu_others": cores["others"] / (os.cpu_count() or 1),
        "each": " ".join(f"{one:.2f}" for one in seconds),
    }
    bench.say(f"  {slates:,} slates: {row['slates_per_s']:,.0f} slates/s")
    return row


class Dump(NamedTuple):
    """The figures of a dump that was read to its end."""

    slates: int
    bytes: int
    seconds: float
    first: float
    """Seconds until its first piece came."""


def read_dump(url: str) -> Dump:
    """Read the dump of the update, whole; its last line must be a slate."""
    connection = http.client.HTTPConnection(*address(url), timeout=60)
    began = time.perf_counter()
    try:
        connection.request("GET", f"/slates/{UPDATE}/dump")
        answer = connection.getresponse()
        if answer.status != 200:
            raise RunFailedError(f"the dump was refused: {answer.read()[:200]!r}")
        piece = last = answer.read1(TAKE)
        first, slates, size = time.perf_counter() - began, 0, 0
        while piece:
            slates += piece.count(b"\n")
            size += len(piece)
            last = (last + piece)[-1_000:]
            piece = answer.read1(TAKE)
    finally:
        connection.close()
    if "slate" not in json.loads(last.splitlines()[-1]):
        raise RunFailedError(f"the dump does not end with a slate: {last[-200:]!r}")
    return Dump(slates, size, time.perf_counter() - began, first)


def read_slate(url: str) -> None:
    """Read a page of one slate."""
    connection = http.client.HTTPConnection(*address(url), timeout=60)
    connection.request("GET", f"/slates/{UPDATE}?limit=1")
    connection.getresponse().read()
    connection.close()


class Memory(NamedTuple):
    """The memory of a process, in MiB."""

    resident: float
    anonymous: float

    @classmethod
    def of(cls, pid: int) -> Memory:
        found = process(pid)
        return cls(found.resident, found.anonymous)


@contextmanager
def watched(pid: int) -> Iterator[list[Memory]]:
    """The peak memory of a process until the block is left: one value, kept up to date."""
    most, stop = [Memory.of(pid)], threading.Event()

    def watch() -> None:
        while not stop.wait(LOOK_EVERY):
            now = Memory.of(pid)
            most[0] = Memory(*map(max, most[0], now))

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield most
    finally:
        stop.set()
        thread.join()
