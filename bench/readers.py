"""Readers of a shared store: the time to the first answer, and the age of their answers.

A store with a million slates is stored as bases in a real S3 server on the same machine. A reader
is started on a host without any data of it, and asked for a slate until it answers; then once more
on a host that has the mirror of the first start. Meanwhile batches are committed, each of which
changes one slate and a thousand others. The lag is the time from a commit to the answer that shows
it. Then a reader follows an application that runs on Spark at a steady rate: the lag is the time
from the moment at which the driver has committed a batch to the first answer of that batch.
"""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from random import Random
from typing import Any
from uuid import uuid4

import httpx
import msgspec

from bench import on_millstream
from bench.apart import RunFailedError, started
from bench.bench import Bench
from bench.calibration import calibrate
from bench.feed import feed, file_lines, marker
from bench.figures import Bar, Outcome, percentile
from fault_runs.s3_server import s3_server
from millstream.codec import encode_value, shard_of
from millstream.driver.startup.leadership import Leading
from millstream.places.place import Place
from millstream.places.place_address import place_at
from millstream.server.child import ServerChild
from millstream.server.options import ServerOptions
from millstream.stores.contract import Changes, Fence
from millstream.stores.home import Facts
from millstream.stores.layout import pack_slate, slates_of
from millstream.stores.progress import Progress
from millstream.stores.shared.commit_log import CommitLog
from millstream.stores.shared.commit_record import CommitRecord, StoreState, state_of
from millstream.stores.shared.copies import Copies
from millstream.stores.shared.manifest import NO_LINEAGE, BaseRef, ShardManifest
from millstream.stores.shared.shard_base import write_base
from millstream.stores.shared.shared_store import SharedStore

SLATES, QUICK_SLATES = 1_000_000, 50_000
SHARDS = 64
UPDATE, PROBE = "count", "probe"
ROUNDS = 3
BATCHES, BATCH_SECONDS, CHANGED = 60, 0.3, 1_000
FIRST_ANSWER = 15.0
"""The most seconds from the start without data to the first answer."""
LAG = 0.2
"""The most seconds from a commit to the answer that shows it."""
RATE, EVERY, WARM_UP, SECONDS = 2_000, 0.25, 10.0, 30.0
"""Events a second of the running application, the seconds between two of its files, the seconds
that are left out and those that are measured."""
PATIENCE = 120.0


def run(bench: Bench) -> Outcome:
    slates = QUICK_SLATES if bench.quick else SLATES
    cache = bench.work / "readers" / "cache"
    bench.say(f"  writing {slates:,} slates")
    with s3_server(bench.fresh("readers/s3")) as s3:
        os.environ.update(s3.environ)
        place = place_at(s3.address(f"readers-{time.time_ns()}"))
        with closing(_Driver(place, bench.fresh("readers/host"), slates)) as driver:
            cold, warm = [], []
            for number in range(1 if bench.quick else ROUNDS):
                shutil.rmtree(cache, ignore_errors=True)
                cold.append(_first_answer(place, cache))
                warm.append(_first_answer(place, cache))
                bench.say(f"  round {number + 1}: {cold[-1]:.2f} s, again {warm[-1]:.2f} s")
            with Leading(place, "bench"):
                lags = _lags(driver, cache)
        size = sum(listed.size for listed in place.list("bases/"))
        running_lags = _lags_of_run(bench, s3.address(f"running-{time.time_ns()}"))
    figures = {
        "first_answer_s": max(cold),
        "again_s": max(warm),
        "lag_p50_s": percentile(lags, 0.5),
        "lag_p99_s": percentile(lags, 0.99),
        "running_lag_p50_s": percentile(running_lags, 0.5),
        "running_lag_p99_s": percentile(running_lags, 0.99),
        "calibration": calibrate(),
    }
    rows = [
        {"what": "from nothing", "seconds": max(cold), "slates_per_s": slates / max(cold)},
        {"what": "mirror of before", "seconds": max(warm), "slates_per_s": slates / max(warm)},
        {"what": "lag behind commits of a thousand slates", **_lag_columns(lags)},
        {"what": f"lag behind a run, {RATE:,} events/s", **_lag_columns(running_lags)},
    ]
    return Outcome(
        "readers",
        rows,
        figures,
        [
            Bar("first_answer_s", figures["first_answer_s"], FIRST_ANSWER, at_least=False),
            Bar("lag_p99_s", figures["lag_p99_s"], LAG, at_least=False),
            Bar("running_lag_p99_s", figures["running_lag_p99_s"], LAG, at_least=False),
        ],
        {"slates": slates, "shards": SHARDS, "bytes": size, "batches": BATCHES},
        [
            "first_answer_s: the slowest round, with the start of the server's processes",
            f"lag: {BATCHES} batches of {CHANGED:,} slates, one every {BATCH_SECONDS} s",
            f"lag behind a run: `local[*]`, {RATE:,} events/s in files every {EVERY} s for "
            f"{SECONDS:.0f} s; {len(running_lags)} batches",
        ],
    )


def _first_answer(place: Place, cache: Path) -> float:
    """Seconds from the start of a server to its first slate."""
    began = time.perf_counter()
    child = _served(place, cache)
    try:
        _probe(httpx.Client(base_url=child.url))
        return time.perf_counter() - began
    finally:
        child.stop()


def _served(place: Place, cache: Path) -> ServerChild:
    return ServerChild.start(
        ServerOptions(Path("unused"), port=0, place=place.address, cache=str(cache))
    )


def _probe(client: httpx.Client) -> int:
    answer = client.get(f"/slates/{UPDATE}/{PROBE}")
    if answer.status_code != 200:
        raise RunFailedError(f"the server answered {answer.status_code}: {answer.text}")
    found: int = answer.json()["slate"]["n"]
    return found


def _lags(driver: _Driver, cache: Path) -> list[float]:
    """Seconds from each commit to the answer that shows it."""
    seen: dict[int, float] = {}
    stop = threading.Event()
    child = _served(driver.place, cache)
    try:
        with httpx.Client(base_url=child.url) as client:

            def watch() -> None:
                while not stop.is_set():
                    seen.setdefault(_probe(client), time.perf_counter())
                    time.sleep(0.002)

            watching = threading.Thread(target=watch, daemon=True)
            watching.start()
            committed = {}
            for number in range(1, BATCHES + 1):
                began = time.perf_counter()
                driver.commit(number)
                committed[number] = time.perf_counter()
                time.sleep(max(0.0, BATCH_SECONDS - (time.perf_counter() - began)))
            deadline = time.perf_counter() + PATIENCE
            while BATCHES not in seen:
                if time.perf_counter() > deadline:
                    raise RunFailedError("the last batch was never shown")
                time.sleep(0.01)
            stop.set()
            watching.join()
    finally:
        child.stop()
    return [
        max(0.0, min(at for shown, at in seen.items() if shown >= number) - began)
        for number, began in committed.items()
    ]


def _lag_columns(lags: list[float]) -> dict[str, float]:
    return {"p50_s": percentile(lags, 0.5), "p99_s": percentile(lags, 0.99), "max_s": max(lags)}


def _lags_of_run(bench: Bench, address: str) -> list[float]:
    """Seconds from each commit of a running application to the answer that shows it."""
    folder = bench.fresh("readers/run")
    source, stop = folder / "in", folder / "stop"
    source.mkdir(parents=True)
    (source / "first.json").write_text("".join(file_lines(Random(0), 0, 400, 0, EVERY)))
    phases = [[RATE, WARM_UP + (5.0 if bench.quick else SECONDS)]]
    given = {"app": "counter", "order": "arrival", "address": f"json:{source}", "place": address}
    folders = {name: str(folder / name) for name in ("store", "cache", "stop")}
    seen: dict[int, float] = {}
    with ExitStack() as open_:
        running = open_.enter_context(started(on_millstream.run_until, **given, **folders))
        cache = str(folder / "reader")
        options = ServerOptions(Path("unused"), port=0, place=address, cache=cache, wait=True)
        child = ServerChild.start(options)
        open_.callback(child.stop)
        client = open_.enter_context(httpx.Client(base_url=child.url))

        def look() -> bool:
            """Note the batch that the reader shows; False before the first."""
            answer = client.get(f"/slates/{UPDATE}/{marker(0)}")
            if answer.status_code == 200:
                seen.setdefault(answer.json()["batch"], time.time())
            time.sleep(0.002)
            return bool(seen)

        while not look():
            if not running.running():
                raise RunFailedError("the run committed no batch")
        fed = open_.enter_context(started(feed, folder=str(source), every=EVERY, phases=phases))
        first = time.time() + WARM_UP
        while fed.running():
            look()
        stop.touch()
        batches = running.wait()["batches"]
    return [
        max(0.0, min(at for shown, at in seen.items() if shown >= batch) - committed)
        for _, _, _, committed, batch in batches
        if batch <= max(seen) and committed >= first
    ]


class _Rows:
    """Rows of a shard, as a view."""

    def __init__(self, rows: list[tuple[bytes, bytes]]) -> None:
        self._rows = rows

    def scan(self, start: bytes) -> Iterator[tuple[bytes, bytes]]:
        return iter(self._rows)


class _Driver:
    """Commits batches to a store that it has filled."""

    def __init__(self, place: Place, host: Path, slates: int) -> None:
        self.place = place
        self._slates = slates
        self._log = CommitLog(place)
        facts = Facts("bench", SHARDS, {UPDATE: "dict"}, id=uuid4().hex)
        self._copies = Copies(place, facts.id, host)
        first = self._record(0, manifest_at=0, manifest=ShardManifest(), facts=_json(facts))
        self._log.create(first)
        self._state: StoreState = state_of(first)
        self._commit(bases=self._bases())

    def close(self) -> None:
        self._copies.close()

    def commit(self, number: int) -> None:
        """A batch that changes the probe and others."""
        keys = [PROBE, *(_key((number * CHANGED + n) % self._slates) for n in range(CHANGED))]
        changes: dict[int, dict[str, Changes]] = {}
        for key in keys:
            rows: dict[bytes, bytes | None] = {}
            shard = changes.setdefault(shard_of(UPDATE, key, SHARDS), {UPDATE: rows})
            shard[UPDATE][_row(key)] = _slate(number)  # type: ignore[index]
        batch = self._state.batch + 1
        lineages = [self._state.manifest.lineage(shard) for shard in range(SHARDS)]
        store = SharedStore(self.place, self._copies, batch, lineages)
        self._commit(changes=store.commit(Fence(1, batch, number), changes))

    def _bases(self) -> list[BaseRef]:
        rows: list[list[tuple[bytes, bytes]]] = [[] for _ in range(SHARDS)]
        for key in (PROBE, *map(_key, range(self._slates - 1))):
            rows[shard_of(UPDATE, key, SHARDS)].append((_row(key), _slate(0)))
        return [
            write_base(self.place, shard, 0, NO_LINEAGE, _Rows(sorted(of)), PATIENCE)  # type: ignore[arg-type]
            for shard, of in enumerate(rows)
        ]

    def _commit(self, **given: Any) -> None:
        commit = self._record(self._state.batch + 1, manifest_at=self._state.manifest_at, **given)
        if not self._log.create(commit):
            raise RunFailedError("another driver commits to the store")
        self._state.take(commit)

    def _record(self, batch: int, **given: Any) -> CommitRecord:
        now = time.time_ns() // 1_000
        return CommitRecord(
            batch=batch,
            epoch=1,
            id=uuid4().hex,
            written=now,
            host="bench",
            progress=_json(Progress(batch=batch, written=now)),
            **given,
        )


def _json(value: Any) -> bytes:
    return msgspec.json.encode(value)


def _key(number: int) -> str:
    return f"user-{number:09d}"


def _row(key: str) -> bytes:
    return slates_of(UPDATE) + key.encode()


def _slate(number: int) -> bytes:
    return pack_slate(1, encode_value({"n": number, "total": 123_456, "name": "somebody"}), {})
