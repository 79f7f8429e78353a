"""A run of the application with its agents: the root on Spark, as users start it."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from bench.apart import RunFailedError, begun
from bench.bench import Bench
from bench.imr import burning, writing
from bench.imr.nodes import APP, on_cores
from bench.imr.texts import WORDS
from bench.imr.watching import Watch, Window
from bench.lean import address
from bench.sending import NDJSON
from bench.served import Served, served
from millstream.windows.panes.message import Message, manifest

FOREVER = 600.0
LANE = ("--lane", "one-task")
WARM, WARMING = "warm", 5
PATIENCE = 180.0
JobOptions = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Root:
    """The running application: its address, and the data that its agents need."""

    served: Served
    folder: Path
    environ: Mapping[str, str]

    @property
    def url(self) -> str:
        return self.served.url


def micros(seconds: float) -> int:
    return round(seconds * 1e6)


def duration(seconds: float) -> str:
    """A time as a job's options have it."""
    return f"{micros(seconds)}us"


def job(name: str, nodes: list[str], *, kind: str = "words", **options: Any) -> JobOptions:
    """A job of the application, as `jobs_app` reads it."""
    return {"name": name, "nodes": nodes, "kind": kind, "options": options}


@contextmanager
def root(
    bench: Bench, what: str, jobs: list[JobOptions], cores: tuple[int, ...] = ()
) -> Iterator[Root]:
    """The application with these jobs, on these cores. Its batches run as one task each: with
    agents beside it no core is left for more, and the first shuffled batch would take seconds."""
    folder = bench.fresh(f"imr/{what}")
    folder.mkdir(parents=True)
    (folder / "jobs.json").write_text(json.dumps([*jobs, job(WARM, [WARM], by="records", range=1)]))
    environ, log = {"BENCH_IMR": str(folder / "jobs.json")}, folder / "said"
    with ExitStack() as stack:
        with on_cores(cores):  # only while it starts: nodes have other cores
            app = stack.enter_context(
                served("run", APP, *LANE, store=folder / "store", log=log, environ=environ)
            )
        _warm(app.url)
        yield Root(app, folder, environ)


def _warm(url: str) -> None:
    """Have a job of its own close some windows, one after the other, so that Spark's start and its
    first batches are in no figure."""
    with Watch(url, WARM, 1) as watch:
        for number in range(WARMING):
            told = manifest("data", number + 1)
            told.records = 1
            message = Message(
                tree=WARM,
                pane=number,
                until=number + 1,
                nodes={WARM: told},
                partials={"w": 1},
                span="records/1/1/1",
            )
            connection = http.client.HTTPConnection(*address(url), timeout=PATIENCE)
            body = msgspec.json.encode(message)
            connection.request("POST", f"/streams/{WARM}.panes", body, {"Content-Type": NDJSON})
            answer = connection.getresponse()
            if answer.status != 200:
                raise RunFailedError(f"the root does not take panes: {answer.read()[:300]!r}")
            connection.close()
            watch.until(partial(_at_least, number + 1), patience=PATIENCE)


def _at_least(count: int, closed: list[Window]) -> bool:
    return len(closed) >= count


@contextmanager
def growing(
    folder: Path,
    nodes: list[str],
    rate: float,
    cores: tuple[int, ...] = (),
    idle: tuple[str, ...] = (),
    ahead: Mapping[str, float] | None = None,
    words: int = WORDS,
) -> Iterator[dict[str, int]]:
    """Logs that grow in a folder; how many lines each got, once this is left."""
    stop, written = folder / "stop-writing", dict[str, int]()
    with begun(
        writing.write,
        folder=str(folder),
        nodes=nodes,
        rate=rate,
        until=time.time() + FOREVER,
        cores=list(cores),
        idle=list(idle),
        ahead=dict(ahead or {}),
        words=words,
        stop=str(stop),
    ) as apart:
        for node in nodes:
            while not (folder / f"{node}.log").exists() and apart.running():
                time.sleep(0.02)
        yield written
        stop.touch()
        written.update(apart.wait())
    stop.unlink()


@contextmanager
def burnt(folder: Path, count: int, cores: tuple[int, ...]) -> Iterator[list[dict[str, float]]]:
    """Runs a number of processes that each burn a core, and gives the work of each at the end."""
    stop, done = folder / "stop-burning", list[dict[str, float]]()
    stop.unlink(missing_ok=True)
    given = {"cores": list(cores), "until": time.time() + FOREVER, "stop": str(stop)}
    with ExitStack() as stack:
        aparts = [stack.enter_context(begun(burning.burn, **given)) for _ in range(count)]
        yield done
        stop.touch()
        done += [apart.wait() for apart in aparts]
