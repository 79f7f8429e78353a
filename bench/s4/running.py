"""Makes a run of the evaluation: the application on a Spark cluster of this machine, as users start
it.

Data comes from files that are all there at once (`from_files`), or over HTTP (`over_http`): at the
paper's rates, each for a while, and then as fast as it is accepted. Executors fetch shuffled data
from each other over the loopback network even though they share a disk, as machines would.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.apart import RunFailedError, begun
from bench.bench import Bench
from bench.machine import ROOT
from bench.s4 import sending
from bench.s4.plan import MEMORY, TASKS, Http
from bench.s4.truth import Counted, counted
from bench.s4.watching import (
    SAMPLE,
    Commit,
    Sample,
    Used,
    Watch,
    rate_between,
    tasks_by_part,
    used,
)
from bench.s4.words import Truth
from bench.served import served
from fault_runs.cluster import Cluster, cluster
from fault_runs.processes import MILLSTREAM, Started, start

PATIENCE = 600.0
"""Seconds after which a run that has not ended never will."""
MIDST = 0.5
"""Seconds after a commit that a worker is killed: in the midst of the next batch."""
WARMING = 40
"""Rounds of warming up, at most."""
SINK = "counts"


@dataclass(frozen=True, slots=True)
class Place:
    """A cluster, and where its runs leave things."""

    cluster: Cluster
    folder: Path
    trace: Path

    def arguments(self, keys: int) -> list[str]:
        """The words after `millstream run`."""
        app = str(ROOT / "bench" / "s4" / "words_app.py")
        given = [f"{app}:keys_{keys}", "--master", self.cluster.url]
        given += ["--memory", MEMORY, "--tasks", str(TASKS)]
        return [*given, "--sink", f"{SINK}=json:{self.folder / 'out'}"]

    @property
    def environ(self) -> Mapping[str, str]:
        return {"SPARK_CONF_DIR": str(self.folder / "conf")}

    def parts(self, **own: int) -> dict[str, int]:
        """The leading process of each part: the workers, then a run's own, then what is left of
        what this process has started: the master, and whoever sends."""
        workers = {f"worker {number + 1}": pid for number, pid in self.cluster.workers.items()}
        return {**workers, **own, "rest": os.getpid()}


@dataclass(frozen=True, slots=True)
class Disturbed:
    """The fault that the workers suffer when a fraction of the words is committed."""

    kill_at: float
    killed: int = 1
    return_at: float | None = None


@dataclass(slots=True)
class Found:
    """The results of a run."""

    counted: Counted
    seconds: float
    """From the start of the command to its end, Spark's start included."""
    commits: list[Commit]
    used: dict[str, Used]
    tasks: dict[str, int]
    rate: float
    """Words a second, after the first batch."""
    marks: dict[str, float] = field(default_factory=dict)
    """When something was done to the run."""
    samples: list[Sample] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Phase:
    """The results of one way of sending."""

    rate: int
    """Words a second that were asked for; 0: as many as are accepted."""
    words: int
    counted: Counted
    """All that was sent until the end of the phase."""
    sent_per_s: float
    words_per_s: float
    """From the first request to the commit of the last word."""
    behind_s: float
    """From the last answer to that commit."""
    used: dict[str, Used]
    tasks: dict[str, int]


@contextmanager
def placed(bench: Bench, workers: int) -> Iterator[Place]:
    """Starts a cluster with a number of workers of one core each."""
    folder = bench.work / "s4"
    (folder / "conf").mkdir(parents=True, exist_ok=True)
    (folder / "conf" / "spark-defaults.conf").write_text("spark.shuffle.readHostLocalDisk false\n")
    trace = folder / "points"
    with cluster(workers, memory=MEMORY, environ={"MILLSTREAM_TRACE": str(trace)}) as made:
        yield Place(made, folder, trace)


def from_files(
    bench: Bench,
    place: Place,
    keys: int,
    source: Path,
    truth: Truth,
    disturbed: Disturbed | None = None,
    *batching: str,
) -> Found:
    """Runs over all words of a folder to the end, with the fault on the workers meanwhile.

    `batching` are more words for `millstream run`.
    """
    store = _fresh(bench, place)
    words = [*MILLSTREAM, "run", *place.arguments(keys), "--source", f"words=json:{source}"]
    words += ["--store", str(store), "--final", "--no-serve", *batching]
    log = place.folder / "said"
    log.unlink(missing_ok=True)
    running, marks = start(words, log, place.environ), dict[str, float]()
    try:
        with Watch(store, lambda: place.parts(driver=running.process.pid)) as watch:
            if disturbed is not None:
                _disturb(place, running, watch, truth.words, disturbed, marks)
            code = running.wait(PATIENCE)
            ended = time.time()
    finally:
        running.kill()
    if code != 0:
        raise RunFailedError(f"the run ended with status {code}: {running.said()}")
    first, last = watch.commits[0], watch.commits[-1]
    return Found(
        counted(store, truth, keys),
        ended - running.at,
        watch.commits,
        used(watch.samples, first.at, last.at),
        dict(tasks_by_part(place.trace, watch.part_of)),
        rate_between(watch.commits, first.at, last.at),
        marks,
        watch.samples,
    )


def _disturb(
    place: Place,
    running: Started,
    watch: Watch,
    words: int,
    disturbed: Disturbed,
    marks: dict[str, float],
) -> None:
    """Kills workers, and starts as many again, when a number of words is committed."""
    _wait(running, lambda: _words(watch) >= disturbed.kill_at * words)
    time.sleep(MIDST)
    marks["killed"] = time.time()
    for number in sorted(place.cluster.workers)[-disturbed.killed :]:
        place.cluster.kill_worker(number)
    if disturbed.return_at is not None:
        until = disturbed.return_at * words
        _wait(running, lambda: _words(watch) >= until)
        marks["returning"] = time.time()
        place.cluster.start_workers(disturbed.killed)
        marks["returned"] = time.time()


def _words(watch: Watch) -> int:
    return watch.last.words if watch.last else 0


def _wait(running: Started, what: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not what():
        if running.process.poll() is not None or time.monotonic() > deadline:
            raise RunFailedError(f"the run ended before it was disturbed: {running.said()}")
        time.sleep(0.02)


def over_http(
    bench: Bench, place: Place, keys: int, source: Path, plan: Http, truth: Callable[[int], Truth]
) -> list[Phase]:
    """Sends at each rate for a while, then as fast as possible. Returns the results of each phase.

    `truth` gives the truth of the first words, of which as many are sent as the phases need.
    """
    store, phases = _fresh(bench, place), list[Phase]()
    words = place.arguments(keys)
    log = place.folder / "said"
    with served("run", *words, store=store, log=log, environ=place.environ) as app:
        own = {"server": app.parts["server"], "driver": app.parts["driver"]}
        with Watch(store, lambda: place.parts(**own)) as watch:
            phase = {"url": app.url, "source": str(source), "every": plan.every}
            sent = _warm(place, watch, plan.warm_up, **phase)
            asked = [(rate, round(rate * plan.seconds)) for rate in plan.rates]
            for rate, count in [*asked, (0, plan.burst(keys))]:
                place.trace.unlink(missing_ok=True)
                with begun(sending.send, **phase, first=sent, count=count, rate=rate) as apart:
                    times = apart.wait()
                sent += count
                _caught_up(watch, sent)
                done = watch.commits[-1].at
                time.sleep(SAMPLE)  # so that the last of it is in the samples
                phases.append(
                    Phase(
                        rate,
                        count,
                        counted(store, truth(sent), keys),
                        count / (times["ended"] - times["began"]),
                        count / max(done - times["began"], 1e-3),
                        max(0.0, done - times["ended"]),
                        used(watch.samples, times["began"], times["ended"] if rate else done),
                        dict(tasks_by_part(place.trace, watch.part_of)),
                    )
                )
    return phases


def _warm(place: Place, watch: Watch, words: int, **phase: Any) -> int:
    """Send a few words again and again until each worker has run a task, so that no start of an
    executor is in the figures; how many were sent."""
    sent = 0
    for _ in range(WARMING):
        sending.send(**phase, first=sent, count=words, rate=0)
        sent += words
        _caught_up(watch, sent)
        time.sleep(SAMPLE)  # until the processes that did it are known
        if len(tasks_by_part(place.trace, watch.part_of)) == len(place.cluster.workers):
            break
    return sent


def _caught_up(watch: Watch, words: int) -> None:
    """Wait until all words sent are committed and nothing waits in the store."""
    deadline = time.monotonic() + PATIENCE
    while not (watch.last and watch.last.words >= words and watch.last.idle):
        if time.monotonic() > deadline:
            raise RunFailedError(f"{_words(watch)} of {words} words after {PATIENCE:.0f} s")
        time.sleep(0.02)


def _fresh(bench: Bench, place: Place) -> Path:
    """An empty store; nothing of the run before is left."""
    bench.fresh("s4/out")
    place.trace.unlink(missing_ok=True)
    return bench.fresh("s4/store")
