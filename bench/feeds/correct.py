"""Random reads, each compared with brute force as of its batch, while everything changes and fails.

The engine runs over the embedded store. Records of all kinds come in batches; the driver dies among
the commits of a batch, and a task that was cancelled commits before its successor. Reads come
between any two of these steps, with a part of the next batch's records as pending: first pages,
older ones and newer ones from any post. A violation is an answer that is not exactly what the
records up to its batch, and the pending ones, make of the feed.
"""

from __future__ import annotations

from random import Random
from typing import Any

import millstream as ms
from bench.bench import Bench
from bench.crashing import Crash, CrashingStore
from bench.feeds.driven import Driven
from bench.feeds.laid import NOW, Record
from bench.feeds.plan import Correct
from bench.feeds.truth import Shown, Truth
from millstream.feeds.names import Position
from millstream.feeds.options import STRATEGIES, Strategy
from millstream.feeds.policy.rates import SECOND
from millstream.feeds.reads.pending_records import Pending
from millstream.feeds.reads.query import FeedQuery, FeedSlice
from millstream.feeds.records import convert_record

Row = dict[str, Any]
KINDS = {
    **{"post": 40, "view": 20, "follow": 14, "delete": 8, "edit": 6, "unfollow": 6},
    **{"block": 3, "unblock": 2, "seen": 1},
}
"""The number of records of each kind in a hundred."""


def run(bench: Bench, plan: Correct) -> list[Row]:
    """Makes a row for each way to decide: reads, violations, and the disturbances meanwhile."""
    rows = []
    for number, decide in enumerate(STRATEGIES):
        reads = plan.reads // 2
        row = _Disturbed(bench, plan, decide, reads, plan.seed + number).run()
        rows.append({"what": f"decided {decide}", **row})
        bench.say(f"    {rows[-1]}")
    return rows


class _Disturbed:
    def __init__(
        self, bench: Bench, plan: Correct, decide: Strategy, reads: int, seed: int
    ) -> None:
        self._bench, self._plan, self._random = bench, plan, Random(seed)
        self._options = ms.feeds.Feeds(decide=decide, keep=15, backfill=3, pushes=5)
        self._left = reads
        self._at = NOW
        self._truth = Truth()
        self._found = {"reads": 0, "violations": 0, "batches": 0, "kills": 0, "retries": 0}
        self._found |= {"flips": 0, "pulled": 0, "items": 0}
        self._first = ""

    def run(self) -> Row:
        path = self._bench.fresh("feeds/correct")
        steps = 3 * self._plan.batches
        with Driven(path, self._options, shards=4) as driven:
            store = driven.store = CrashingStore(driven.store)
            driven.on_side = self._flip
            for number in range(self._plan.batches):
                share = -(-self._left // max(1, steps - 3 * number))
                self._batch(driven, store, [*self._records()], share)
            driven.settle()
            self._reads(driven, [], self._left)
        self._bench.fresh("feeds/correct")
        return {**self._found, **({"first": self._first} if self._first else {})}

    def _batch(
        self, driven: Driven, store: CrashingStore, records: list[Record], share: int
    ) -> None:
        """Runs a batch with possible faults, and reads before, during and after it."""
        chance = self._random.random()
        self._reads(driven, records, share)
        if chance < 0.25:
            store.left = self._random.randrange(store.shards)
            try:
                driven.batch(records)
            except Crash:
                self._found["kills"] += 1
                self._reads(driven, records, share)
                driven.epoch += 1
                for number in range(store.shards):
                    store.shard(number).roll_back(driven.epoch, driven.progress.batch)
                self._reads(driven, records, share)
                store.left = None
                driven.batch(records)
            store.left = None
        else:
            if chance < 0.4:
                part = records[: len(records) // 2]
                driven.cancelled(part)
                self._found["retries"] += 1
                self._reads(driven, records, share)
            driven.batch(records)
        self._found["batches"] += 1
        self._truth.add(records)
        self._reads(driven, [], share)

    def _reads(self, driven: Driven, coming: list[Record], count: int) -> None:
        """Makes a number of reads, some of them with pending records."""
        ahead = self._random.randrange(len(coming) + 1)
        truths = [(self._truth, Pending())]
        if ahead:
            truths.append((self._truth.copy(), Pending(map(convert_record, coming[:ahead]))))
            truths[-1][0].add(coming[:ahead])
        for number in range(min(count, self._left)):
            truth, pending = truths[number % len(truths)]
            self._read(driven, truth, pending)
            self._left -= 1

    def _read(self, driven: Driven, truth: Truth, pending: Pending) -> None:
        random = self._random
        consumer = f"c{random.randrange(self._plan.consumers)}"
        limit = random.choice((1, 3, 5, 20))
        feed = truth.feed(consumer)
        place: Position | None = None
        if feed and random.random() < 0.6:
            ts, producer, post, _ = random.choice(feed)
            place = ts, producer, post if random.random() < 0.8 else post + "x"
        newer = place is not None and random.random() < 0.4

        def read(query: FeedQuery) -> FeedSlice:
            return query.newer(place, limit) if newer and place else query.older(place, limit)

        page: FeedSlice = driven.query(read, consumer, pending)
        must, more = expected(feed, place, limit, newer=newer)
        got = [(one.ts, one.producer, one.id, one.value) for one in page.items]
        self._found["reads"] += 1
        self._found["pulled"] += page.pulled
        self._found["items"] += len(got)
        if got != must or page.more != more:
            self._found["violations"] += 1
            said = f"{consumer} as of {driven.progress.batch}, {place}, {limit}: {got} not {must}"
            self._first = self._first or said[:400]

    def _flip(self, consumer: str, value: Record) -> None:
        self._found["flips"] += 1

    def _records(self) -> list[Record]:
        """The records of a batch."""
        random, found = self._random, []
        kinds = random.choices(list(KINDS), list(KINDS.values()), k=self._plan.records)
        for kind in kinds:
            self._at += random.randrange(1, 20 * SECOND)
            producer = f"p{int(self._plan.producers * random.random() ** 2)}"
            consumer = f"c{random.randrange(self._plan.consumers)}"
            record: Record = {"kind": kind, "at": self._at}
            if kind in ("post", "edit", "delete"):
                post = f"x{self._at}" if kind == "post" else self._truth.any_post(producer, random)
                record |= {"producer": producer, "id": post}
                if kind != "delete":
                    record["value"] = random.randrange(1_000)
                if kind == "post":
                    record["ratio"] = random.choice((0.05, 0.5, 2.0, 20.0))
            elif kind == "view":
                record |= {"consumer": consumer, "count": random.choice((1, 3, 40, 400))}
                record |= {"flow": random.choice((0.0, 0.001, 0.1))}
            elif kind == "seen":
                record |= {"consumer": consumer, "upto": [self._at, producer, "x"]}
            else:
                record |= {"consumer": consumer, "producer": producer}
            found.append(record)
        return found


def expected(
    feed: list[Shown], place: Position | None, limit: int, *, newer: bool
) -> tuple[list[Shown], bool]:
    """Returns the expected page of a whole feed that is newest first. Pure."""
    if place is None:
        return feed[:limit], len(feed) > limit
    if newer:
        found = [one for one in feed if one[:3] > place]
        return found[-limit:], len(found) > limit
    found = [one for one in feed if one[:3] < place]
    return found[:limit], len(found) > limit
