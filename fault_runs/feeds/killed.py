"""Feeds are read while the application is killed; each read is compared with what was acknowledged.

One client sends records and reads a feed, by turns. So the correct feed is known exactly at every
read, whatever the application has or has not processed by then. Follows, posts, edits, deletes and
blocks come in any order; pairs change their side, since some consumers read often and some
producers post in bursts. The application is killed, with its JVM and its server, and started again;
requests that were not acknowledged are sent again with their keys.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import httpx

from bench.feeds.truth import Record, Shown, Truth
from fault_runs.processes import ROOT, seconds_to_commit
from fault_runs.result import Result
from fault_runs.scenario import Context, Scenario
from fault_runs.spark_app import SparkApp

KILLS = 2
ROUNDS = 150
"""Rounds between two kills."""
PRODUCERS, CONSUMERS = 12, 40
DAY = 86_400_000_000
APP = str(ROOT / "fault_runs" / "feeds" / "app.py")
PATIENCE = 120.0
KINDS = ("post",) * 8 + ("follow",) * 6 + ("edit", "delete", "unfollow", "block", "unblock")


@dataclass
class Client:
    """Sends records to feeds and reads feeds, one after the other."""

    url: str
    random: Random
    http: httpx.Client = field(default_factory=lambda: httpx.Client(timeout=10.0))
    truth: Truth = field(default_factory=Truth)
    sent: int = 0
    at: int = field(default_factory=lambda: time.time_ns() // 1_000 - DAY)
    reads: int = 0
    missing: int = 0
    wrong: int = 0
    """Items that are wrong, missing or repeated."""
    first: str = ""
    """The first difference."""
    how: dict[str, int] = field(default_factory=dict)

    def turn(self) -> None:
        """Send some records, and read a feed."""
        records = [self._record() for _ in range(self.random.randint(1, 6))]
        self._post(records)
        self.truth.add(records)
        often = self.random.randrange(12) if self.random.random() < 0.8 else None
        chosen = self.random.randrange(CONSUMERS) if often is None else often
        self.read(f"c{chosen}")

    def _record(self) -> Record:
        random, kind = self.random, self.random.choice(KINDS)
        self.sent += 1
        burst = self.sent % 500 < 150  # now and then two producers post much more than others
        self.at += 1_000 if burst else random.choice((1_000, 5_000_000, 30_000_000))
        producer = random.randrange(2 if burst else PRODUCERS)
        record: Record = {"kind": kind, "at": self.at, "producer": f"p{producer}"}
        if kind not in ("post", "edit", "delete"):
            return {**record, "consumer": f"c{random.randrange(CONSUMERS)}"}
        new = kind == "post" and random.random() < 0.95
        record["id"] = f"i{self.sent}" if new else f"i{random.randrange(1, self.sent + 1)}"
        return record if kind == "delete" else {**record, "value": {"text": f"{kind} {self.sent}"}}

    def _post(self, records: list[Record]) -> None:
        """Post records, again until they are acknowledged."""
        key, deadline = f"{self.sent}", time.monotonic() + PATIENCE
        while True:
            try:
                answer = self.http.post(
                    f"{self.url}/feeds/events",
                    content="\n".join(map(json.dumps, records)),
                    headers={"Content-Type": "application/x-ndjson", "Idempotency-Key": key},
                )
                if answer.status_code == 200:
                    return
                if answer.status_code != 503:
                    raise AssertionError(f"refused: {answer.status_code} {answer.text[:300]}")
            except httpx.HTTPError:
                pass  # the server is down, or was killed before it could answer
            self._wait(deadline)

    def read(self, consumer: str) -> None:
        """Read a whole feed by pages; retries a page while the application is down."""
        expected, limit = self.truth.feed(consumer), self.random.choice((3, 20, 100))
        found: list[Shown] = []
        cursor: str | None = None
        while True:
            page = self._page(consumer, limit, cursor)
            found += [
                (one["ts"], one["producer"], one["id"], one["value"]) for one in page["items"]
            ]
            for one in page["items"]:
                self.how[one["how"]] = self.how.get(one["how"], 0) + 1
            cursor = page["next"]
            self.reads += 1
            if cursor is None or not page["complete"]:
                break
        if found != expected:
            missing = sum(one not in found for one in expected)
            self.missing += missing
            self.wrong += max(1 if not missing else 0, len(found) - len(expected) + missing)
            self.first = self.first or (
                f"feed of {consumer} after {self.sent} records: {len(found)} items, must be "
                f"{len(expected)}; {missing} missing"
            )

    def _page(self, consumer: str, limit: int, cursor: str | None) -> dict[str, Any]:
        asked: dict[str, str | int] = {"limit": limit, "coherency": "global"}
        if cursor is not None:
            asked["cursor"] = cursor
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                answer = self.http.get(f"{self.url}/feeds/{consumer}", params=asked)
                if answer.status_code == 200:
                    page: dict[str, Any] = answer.json()
                    return page
                if answer.status_code != 503:
                    raise AssertionError(f"not read: {answer.status_code} {answer.text[:300]}")
            except httpx.HTTPError:
                pass
            self._wait(deadline)

    def _wait(self, deadline: float) -> None:
        if time.monotonic() > deadline:
            raise AssertionError(f"the application did not answer for {PATIENCE:.0f} s")
        time.sleep(0.1)


def run_killed(seed: int, folder: Path, context: Context) -> Result:
    """Turns, a kill, more turns; at the end every feed is read once more."""
    random, application, times = Random(seed), SparkApp(folder, APP), list[float]()
    client = Client(application.url, random)
    application.start()
    try:
        application.wait()
        for _ in range(KILLS):
            for _ in range(random.randint(ROUNDS // 2, ROUNDS)):
                client.turn()
            application.kill()
            seconds = seconds_to_commit(application.store, application.start())
            times += [seconds] if seconds is not None else []
        for _ in range(ROUNDS):
            client.turn()
        for number in range(CONSUMERS):
            client.read(f"c{number}")
    finally:
        client.http.close()
        application.kill()
    how = ", ".join(f"{count} {name}" for name, count in sorted(client.how.items()))
    note = client.first or f"{client.reads} reads, {client.sent} records; items by {how}"
    lost, doubled = client.missing, client.wrong
    return Result(KILLED.name, seed, lost, doubled, tuple(times), note, runs=KILLS)


KILLED = Scenario(
    "feeds-read-while-killed",
    "Every read of a feed is what was acknowledged, whatever was pushed, pulled or under way",
    run_killed,
    least=10,
)
