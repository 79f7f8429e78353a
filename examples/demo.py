"""`make demo`: the check-ins of `retail.py`, live, on this machine.

    python -m examples.demo [--seconds 15] [--store DIR] [--port N]

A thread sends made-up check-ins over HTTP, as some other system would; the application counts them
on Spark, and its page shows it. All is in one folder, and a second start goes on from what is
there, however the first one ended.
"""

from __future__ import annotations

import argparse
import os
import socket
import sys
import threading
import time
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from examples import generate, retail
from millstream import Client
from millstream.cli.progress import summary
from millstream.cli.spark_run import run_served
from millstream.errors import MillstreamError
from millstream.model.place import shown_path
from millstream.notices import say
from millstream.server.options import PORT
from millstream.settings.settings import Settings, resolve

if TYPE_CHECKING:
    from millstream.driver.report import BatchSummary, RunSummary

STORE = Path(".millstream") / "retail-demo"
EVERY = 0.15
"""Seconds between two requests."""
AT_ONCE = 60
"""Check-ins in a request: 400 a second."""
MILLSTREAM = shown_path(Path(sys.executable).with_name("millstream"))


class Demo:
    """The coming of check-ins while the application runs, and the end of it."""

    def __init__(self, store: Path, seconds: float) -> None:
        self._store = store
        self._seconds = seconds
        self._first: float | None = None
        self._counted = 0
        self._sent = 0

    def run(self, settings: Settings) -> RunSummary:
        """Run the application while check-ins come."""
        return run_served(retail.app, settings, served=self._served, also=self._told)

    def _served(self, url: str, stop: threading.Event) -> None:
        tell(opening(url, self._store, self._seconds))
        threading.Thread(target=self._go, args=(url, stop), name="check-ins", daemon=True).start()

    def _told(self, report: BatchSummary) -> None:
        """After each batch: the seconds count from the first one."""
        self._counted = report.total_events
        if self._first is None:
            self._first = time.monotonic()

    def _go(self, url: str, stop: threading.Event) -> None:
        """Send until the time is over, see that all of it is counted, and stop the application."""
        try:
            with Client(url) as client:
                random = Random(time.time_ns())
                while not stop.wait(EVERY) and not self._over():
                    self._sent = self._send(client, random)
        except MillstreamError as error:
            if not stop.is_set():
                say(f"no more check-ins: {error}")
        while not stop.wait(EVERY):
            if self._over() and self._counted >= self._sent:
                stop.set()

    def _send(self, client: Client, random: Random) -> int:
        """Send check-ins made just now; how many there are in all."""
        at = int(time.time() * generate.SECOND)
        made = [generate.checkin(random, at - n * 1_000) for n in range(AT_ONCE)]
        client.send("checkins", made)
        return sum(s.records or 0 for s in client.streams() if s.name == "checkins")

    def _over(self) -> bool:
        if not self._seconds or self._first is None:
            return False
        return time.monotonic() - self._first >= self._seconds


def counts(store: Path) -> dict[str, int]:
    """The slates of `count` as of the last committed batch; none if there is no store yet."""
    from millstream.stores.reader import SlateReader

    if not (store / "store.json").exists():
        return {}
    with SlateReader(store) as reader:
        return {slate.key: slate.value["count"] for slate in reader.scan("count")}


def table(counts: dict[str, int]) -> str:
    """The counts, the highest first, and their sum."""
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    rows = [("retailer", "check-ins"), *((key, f"{n:,}") for key, n in ranked)]
    rows.append(("all", f"{sum(counts.values()):,}"))
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
        default=0,
        help="how long check-ins come after the first batch; default: until Ctrl-C",
    )
    parser.add_argument("--store", type=Path, default=STORE, help=f"default: {STORE}")
    parser.add_argument(
        "--port", type=int, help=f"of the page; default: {PORT}, or any that is free"
    )
    given = parser.parse_args(arguments)
    try:
        port = free_port(PORT) if given.port is None else given.port
        settings = resolve(retail.app, flags={"store": given.store, "port": port})
        before = counts(given.store)
        if before:
            tell(f"There are counts from before, and they go on:\n\n{table(before)}\n")
        say("starting the server, then Spark ...")
        say(summary(Demo(given.store, given.seconds).run(settings)))
        tell(f"\nThe slates now:\n\n{table(counts(given.store))}\n\n{closing(given.store)}")
    except MillstreamError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def free_port(wish: int) -> int:
    """The port if nobody listens there, else 0: any."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", wish))
        except OSError:
            return 0
    return wish


def opening(url: str, store: Path, seconds: float) -> str:
    length = f"until {seconds:g} seconds after the first batch" if seconds else "until Ctrl-C"
    return f"""\

The live page:    {url}

Made-up check-ins, about {AT_ONCE / EVERY:.0f} a second, are sent there and counted by retailer,
{length}. The application is examples/retail.py, on Spark; its store is {shown_path(store)}
While it runs, from another terminal:

    curl {url}/slates/count/Walmart
    kill -9 {os.getpid()}    # as a crash would; then `make demo` again: the counts go on
"""


def closing(store: Path) -> str:
    return f"""\
Try:

    {MILLSTREAM} slates get count Walmart --store {shown_path(store)}
    {MILLSTREAM} serve --store {shown_path(store)}    # the page and HTTP, without the application
    {MILLSTREAM} graph examples/retail.py
    make demo    # again: the counts go on, also after a kill -9"""


def tell(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
