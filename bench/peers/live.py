"""Measures how soon counts can be read while events come in at a fixed rate, in files every 100 ms.

For those who can follow a folder: Millstream, whose slate is read, and Pathway and PySpark, whose
files of results are. Each file ends with a marker; its latency is from the arrival of the file to
the moment at which the marker's count was read from outside.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from bench import feed, latency
from bench.apart import Apart, started
from bench.bench import Bench
from bench.figures import percentile
from bench.latency import EVERY, PATIENCE, POLL
from bench.peers.contestants import CONTESTANTS, Contestant, Run
from bench.peers.footprint import Footprint
from bench.peers.loads import Load
from bench.peers.racing import python_of, said_by, started_process, variables_of

FOLLOWERS = ("pathway", "spark")
BEHIND_SECONDS = 20.0
"""A contestant that has not shown the last markers this long after the end of the feed is too
slow."""
FIRST = -1
"""The marker of the file that is there before the feed."""


def measured(bench: Bench, rate: int, warm_up: float, seconds: float) -> list[dict[str, Any]]:
    """The rows of all who can follow a folder."""
    ours = latency.measure(bench, "Millstream", "single", "arrival", warm_up, seconds, rate)
    row = {name: ours[name] for name in ("what", "p50_s", "p99_s", "max_s", "missing")}
    rows = [{**row, "name": "millstream"}]
    for contestant in CONTESTANTS:
        if contestant.name in FOLLOWERS:
            rows.append(_followed(bench, contestant, rate, warm_up, seconds))
    return rows


def _followed(
    bench: Bench, contestant: Contestant, rate: int, warm_up: float, seconds: float
) -> dict[str, Any]:
    row: dict[str, Any] = {"what": contestant.shown, "name": contestant.name}
    python = str(python_of(contestant))
    source = bench.fresh("peers/live/in")
    run = Run(bench.fresh(f"peers/live/{contestant.name}"), Load("live", "count", source, 0, {}))
    for folder in (source, run.state, run.result):
        folder.mkdir(parents=True)
    lines = feed.file_lines(Random(0), FIRST, 400, time.time() - 1, EVERY)
    (source / "first.json").write_text("".join(lines))
    variables = {**variables_of(contestant, run), "PEER_LIVE": "1"}
    (command,) = contestant.commands(run)
    wanted = range(round(warm_up / EVERY), round((warm_up + seconds) / EVERY))
    with (
        started_process([python, *command], run, 0, variables) as process,
        Footprint([process.pid]) as footprint,
    ):
        seen = Seen(run.result)
        if not seen.until(lambda: FIRST in seen.at, process, PATIENCE):
            return {**row, "failed": f"it has shown nothing: {said_by(run)}"}
        phases = [[rate, warm_up + seconds]]
        with started(feed.feed, folder=str(source), every=EVERY, phases=phases) as feeding:
            last = round((warm_up + seconds) / EVERY) - 1
            whole = warm_up + seconds + BEHIND_SECONDS
            seen.until(lambda: last in seen.at, process, whole)
            arrivals = _arrivals(feeding)
    waits = [seen.at[number] - arrivals[number] for number in wanted if number in seen.at]
    if not waits:
        return {**row, "failed": "it has shown no marker in time"}
    return {
        **row,
        "p50_s": percentile(waits, 0.5),
        "p99_s": percentile(waits, 0.99),
        "max_s": max(waits),
        "missing": len(wanted) - len(waits),
        "cpu_others": round(footprint.cpu_others, 2),
    }


def _arrivals(feeding: Apart) -> list[float]:
    found: list[float] = feeding.wait()
    return found


class Seen:
    """Follows the files of a folder, and knows when each marker was first in one."""

    def __init__(self, folder: Path) -> None:
        self.at: dict[int, float] = {}
        self._folder = folder
        self._read: dict[Path, int] = {}

    def until(
        self, reached: Callable[[], bool], process: subprocess.Popen[bytes], most: float
    ) -> bool:
        """Looks until a count is reached. Returns False if it is not reached in time."""
        deadline = time.monotonic() + most
        while not reached() and time.monotonic() < deadline and process.poll() is None:
            self.look()
            time.sleep(POLL)
        return reached()

    def look(self) -> None:
        """Reads new results."""
        for path in self._folder.rglob("[!._]*"):
            if any(part.startswith(("_", ".")) for part in path.relative_to(self._folder).parts):
                continue
            try:
                size, read = path.stat().st_size, self._read.get(path, 0)
                if path.is_dir() or size == read:
                    continue
                with path.open("rb") as file:
                    file.seek(read)
                    text = file.read()
            except OSError:
                continue  # it was moved meanwhile
            whole = text.rfind(b"\n") + 1
            self._read[path] = read + whole
            self._mark(text[:whole])

    def _mark(self, text: bytes) -> None:
        now = time.time()
        for part in text.split(b'"m')[1:]:
            number = part.partition(b'"')[0]
            if number.lstrip(b"-").isdigit():
                self.at.setdefault(int(number), now)
