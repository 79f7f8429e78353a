"""A post of a producer that very many follow: how it is spread over batches, and what that takes.

Half of the followers look often and are on push, the others never look and are on pull. One store
is given more and more followers, by records as in use; at each count there is one post. Amid its
pushes the store is closed and opened again, as by a restart, and feeds are read: of followers that
were reached, of some that were not yet, and of some on pull. All must have the post.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import millstream as ms
from bench.bench import Bench
from bench.feeds.driven import Counted, Driven
from bench.feeds.laid import NOW, TEXT, Record, consumer, follows, producer
from bench.feeds.plan import Followed
from bench.processes import process
from millstream.feeds.policy.rates import SECOND
from millstream.feeds.reads.pending_records import NOTHING

Row = dict[str, Any]
STAR = 0
OFTEN = 1_000
"""Looks of a consumer that is on push."""
READ = 3
"""Items of a page: two old posts and the new one."""


def run(bench: Bench, plan: Followed) -> list[Row]:
    """A row for each count of followers."""
    rows: list[Row] = []
    star = _Star(bench.fresh("feeds/followed"), plan)
    try:
        for count in plan.counts:
            star.follow(count)
            rows.append({"what": f"{count:,} followers", **star.post()})
            bench.say(f"    {rows[-1]}")
    finally:
        star.close()
    bench.fresh("feeds/followed")
    return rows


@dataclass
class _Spread:
    """The work of the batches in which a post was pushed."""

    batches: int = 0
    pushes: int = 0
    cpu_s: float = 0.0
    longest_s: float = 0.0
    memory_mib: float = 0.0
    """The most that the process had of its own after a batch."""

    def add(self, did: Counted) -> None:
        self.batches += 1
        self.pushes += did.pushes
        self.cpu_s += did.maintenance_s
        self.longest_s = max(self.longest_s, did.maintenance_s)
        self.memory_mib = max(self.memory_mib, process(os.getpid()).anonymous)


class _Star:
    """The producer, in a store with nobody else."""

    def __init__(self, path: Path, plan: Followed) -> None:
        self._path, self._plan, self._random = path, plan, Random(plan.seed)
        self._options = ms.feeds.Feeds(pushes=plan.pushes)
        self._driven = Driven(path, self._options)
        self._driven.progress.clock = NOW
        self._followers = self._posts = 0

    def close(self) -> None:
        self._driven.__exit__()

    def follow(self, count: int) -> None:
        """Adds a number of followers that all know their side."""
        for begin in range(self._followers, count, self._plan.batch):
            new = range(begin, min(count, begin + self._plan.batch))
            self._driven.run([*_looks(new, self._at)], len(new))
            pairs = ((STAR, number) for number in new)
            self._driven.run([*follows(pairs, self._at)], len(new))
        self._followers = count

    def post(self) -> Row:
        """Makes a post, and runs batches until all followers on push have it."""
        self._posts += 1
        self._driven.taken()
        on_push = -(-self._followers // 2)
        spread = _Spread()
        self._batch(spread, [self._record()])
        while self._driven.is_due and spread.pushes < on_push / 2:
            self._batch(spread)
        wrong = self._wrong()
        self._restart()
        wrong += self._wrong()
        while self._driven.is_due:
            self._batch(spread)
        return {
            "followers": self._followers,
            "pushes": spread.pushes,
            "batches": spread.batches,
            "push_us": 1e6 * spread.cpu_s / max(1, spread.pushes),
            "longest_s": spread.longest_s,
            "memory_mib": spread.memory_mib,
            "reads": 3 * self._plan.reads,
            "violations": wrong + self._wrong() + abs(on_push - spread.pushes),
        }

    def _batch(self, spread: _Spread, records: Sequence[Record] = ()) -> None:
        self._driven.batch(records)
        spread.add(self._driven.taken())

    @property
    def _at(self) -> int:
        """The time of the next record."""
        return self._driven.progress.clock + SECOND

    def _record(self) -> Record:
        one = {"kind": "post", "producer": producer(STAR), "id": f"n{self._posts}", "value": TEXT}
        return {**one, "at": self._at}

    def _restart(self) -> None:
        progress, epoch = self._driven.progress, self._driven.epoch
        self.close()
        self._driven = Driven(self._path, self._options)
        self._driven.progress, self._driven.epoch = progress, epoch + 1

    def _wrong(self) -> int:
        """Counts the feeds, in a random sample, that differ from the posts."""
        newest = [f"n{number}" for number in range(self._posts, 0, -1)][:READ]
        some = (self._random.randrange(self._followers) for _ in range(self._plan.reads))
        return sum(self._read(consumer(one)) != newest for one in some)

    def _read(self, one: str) -> list[str]:
        page = self._driven.query(lambda query: query.older(None, READ), one, NOTHING)
        return [item.id for item in page.items]


def _looks(of: range, at: int) -> Iterator[Record]:
    """Every second consumer looks often."""
    for number in of:
        if number % 2 == 0:
            yield {"kind": "view", "at": at + number, "consumer": consumer(number), "count": OFTEN}
