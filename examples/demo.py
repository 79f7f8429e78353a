"""`make demo`: the check-ins of `retail.py`, live, on this machine.

    python -m examples.demo [--seconds 15] [--store DIR]

A thread writes a file of made-up check-ins every 150 ms, as some other system would; the
application counts them on Spark. All is in one folder, the check-ins too, and a second start goes
on from what is there, however the first one ended.
"""

from __future__ import annotations

import argparse
import os
import sys
import threading
import time
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from examples import generate, retail
from millstream.cli.progress import display, say, summary
from millstream.cli.stopping import stoppable
from millstream.errors import MillstreamError
from millstream.model.place import shown_path
from millstream.settings import resolve

if TYPE_CHECKING:
    from millstream.spark.report import BatchSummary, RunSummary

STORE = Path(".millstream") / "retail-demo"
EVERY = 0.15
"""Seconds between two files."""
A_FILE = 60
"""Check-ins in a file: 400 a second."""
MILLSTREAM = shown_path(Path(sys.executable).with_name("millstream"))


class Checkins:
    """Writes check-ins, a file at a time, and knows how many there are in all."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        files = list(folder.glob("*.json"))
        self._folder = folder
        self._number = len(files)
        self._random = Random(self._number)  # another series at each start
        self.written = sum(file.read_bytes().count(b"\n") for file in files)

    def write(self, now: float) -> None:
        """One more file, of check-ins made just now."""
        at = int(now * generate.SECOND)
        records = (generate.checkin(self._random, at - n * 1_000) for n in range(A_FILE))
        self.written += generate.write(self._folder, f"{self._number:06d}.json", records)
        self._number += 1


class Live:
    """The coming of check-ins while the application runs, and the end of it."""

    def __init__(self, checkins: Checkins, seconds: float) -> None:
        self._checkins = checkins
        self._seconds = seconds
        self._first: float | None = None
        self._counted = 0

    def report(self, report: BatchSummary) -> None:
        """After each batch: the seconds count from the first one."""
        self._counted = report.total_events
        if self._first is None:
            self._first = time.monotonic()

    def go(self, stop: threading.Event) -> None:
        """Write until the time is over, see that all of it is counted, and stop the application."""
        while not stop.wait(EVERY) and not self._over():
            self._checkins.write(time.time())
        while not stop.wait(EVERY):
            if self._counted >= self._checkins.written:
                stop.set()

    def _over(self) -> bool:
        if not self._seconds or self._first is None:
            return False
        return time.monotonic() - self._first >= self._seconds


def run(store: Path, seconds: float) -> RunSummary:
    """Run the application while check-ins come."""
    folder = store / "checkins"
    settings = resolve(
        retail.app, flags={"store": store, "sources": {"checkins": f"json:{folder}"}}
    )
    live, shown = Live(Checkins(folder), seconds), display(False, time.monotonic)

    def on_report(report: BatchSummary) -> None:
        live.report(report)
        shown(report)

    def work(stop: threading.Event) -> RunSummary:
        from millstream.spark.query import run as run_on_spark

        writer = threading.Thread(target=live.go, args=(stop,), name="check-ins", daemon=True)
        writer.start()
        try:
            return run_on_spark(retail.app, settings, on_report, stop=stop)
        finally:
            stop.set()
            writer.join()

    return stoppable(work)


def counts(store: Path) -> dict[str, int]:
    """The slates of `count` as of the last committed batch; none if there is no store yet."""
    from millstream.stores.reader import SlateReader

    if not (store / "store.json").exists():
        return {}
    with SlateReader(store) as reader:
        return {slate.key: slate.value["count"] for slate in reader.scan("count")}


def table(found: dict[str, int]) -> str:
    """The counts, the highest first, and their sum."""
    ranked = sorted(found.items(), key=lambda item: (-item[1], item[0]))
    rows = [("retailer", "check-ins"), *((key, f"{n:,}") for key, n in ranked)]
    rows.append(("all", f"{sum(found.values()):,}"))
    left = max(len(row[0]) for row in rows)
    right = max(len(row[1]) for row in rows)
    return "\n".join(f"    {key:<{left}}  {number:>{right}}" for key, number in rows)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m examples.demo", description="Count made-up check-ins by retailer, live."
    )
    parser.add_argument(
        "--seconds",
        type=float,
        default=15,
        help="how long check-ins come after the first batch; 0: until Ctrl-C",
    )
    parser.add_argument("--store", type=Path, default=STORE, help=f"default: {STORE}")
    given = parser.parse_args(arguments)
    try:
        tell(opening(given.store, given.seconds))
        before = counts(given.store)
        if before:
            tell(f"There are counts from before, and they go on:\n\n{table(before)}\n")
        say("starting Spark ...")
        say(summary(run(given.store, given.seconds)))
        tell(f"\nThe slates now:\n\n{table(counts(given.store))}\n\n{closing(given.store)}")
    except MillstreamError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def opening(store: Path, seconds: float) -> str:
    length = f"until {seconds:g} seconds after the first batch" if seconds else "until Ctrl-C"
    return f"""\
Made-up check-ins, about {A_FILE / EVERY:.0f} a second, counted by retailer. They come from now on,
while Spark starts, {length}.
The application is examples/retail.py, on Spark; its store is {shown_path(store)}

While it runs, from another terminal:

    {MILLSTREAM} slates get count Walmart --store {shown_path(store)}
    kill -9 {os.getpid()}    # as a crash would; then `make demo` again: the counts go on
"""


def closing(store: Path) -> str:
    return f"""\
Try:

    {MILLSTREAM} slates get count Walmart --store {shown_path(store)}
    {MILLSTREAM} slates scan count --store {shown_path(store)}
    {MILLSTREAM} graph examples/retail.py
    make demo    # again: the counts go on, also after a kill -9"""


def tell(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
