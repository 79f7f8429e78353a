"""The consumers of feeds: their follows, how often they view their feed, and their pushed items.

This is an update with one table for each consumer (see `names`). A new follow starts on pull, so
old posts are visible at once. The producer is told, and decides in the next batch whether push is
better for the pair. Pushed posts are items of the table, ordered by time. The table holds at most
twice `keep` items; posts older than the `floor` are pulled.

A consumer reports its view rate to its producers only when the rate has changed by `BAND` classes.
With `decide="per-consumer"` the consumer decides by Lemma 2 for all of its producers, and reports
`ALWAYS` or `NEVER`. A consumer that has stopped viewing its feed sends no event that says so.
Pushes to it reveal how long ago its last view was, and in time its pairs go back to pull.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from millstream.feeds.names import (
    META,
    after,
    entry,
    item_entry,
    parts,
    prefix,
    pushed_by,
    time_text,
)
from millstream.feeds.options import FeedOptions
from millstream.feeds.policy import Side, held
from millstream.feeds.rates import ALWAYS, NEVER, Rate, class_of
from millstream.model.event import Emit, Event, emit
from millstream.model.function import takes
from millstream.model.slate import Table

BAND = 3
"""A view rate must change by this many classes before producers are told: a factor of 1.7."""
HOLD = 1.5
"""A consumer must pass the threshold by this factor before all of its producers change side."""
SILENT = 1 / 4
"""After this part of the memory without a view, a push triggers a check of how far the rate has
faded."""
GONE = 1 / 8
"""When only this part of the rate is left, a consumer that was chosen to have all of its producers
on push no longer has."""
ITEMS, PULL, PUSH = prefix("item"), prefix("pull"), prefix("push")
Told = dict[str, Any]


@dataclass(frozen=True)
class Consumers:
    """The update function."""

    options: FeedOptions
    name: str
    __signature__ = takes("event", "slate")

    def __call__(self, event: Event, table: Table) -> Iterator[Emit]:
        consumer = Consumer(self.options, self.name, event.key, table)
        told: Told = event.value
        yield from getattr(consumer, told["kind"])(told)
        consumer.save()


class Consumer:
    """One consumer while it processes an event. There is one method for each kind of event."""

    def __init__(self, options: FeedOptions, name: str, key: str, table: Table) -> None:
        self._options, self._name, self._key, self._table = options, name, key, table
        self._stored = table.get(META)
        self._meta: dict[str, Any] = self._stored or {}
        self._meta = {"class": NEVER, "follows": 0, "items": 0, "floor": 0, **self._meta}

    def follow(self, told: Told) -> Iterator[Emit]:
        producer, since = told["producer"], told["at"]
        if entry("block", producer) in self._table or self._followed(producer) is not None:
            return
        self._table[PULL + producer] = since
        self._meta["follows"] += 1
        yield self._tell(producer, "followed", since)

    def unfollow(self, told: Told) -> Iterator[Emit]:
        producer = told["producer"]
        since = self._followed(producer)
        if since is None:
            return
        self._leave_push(producer)
        self._table.discard(PULL + producer)
        self._meta["follows"] -= 1
        yield self._tell(producer, "unfollowed", since)

    def block(self, told: Told) -> Iterator[Emit]:
        yield from self.unfollow(told)
        self._table[entry("block", told["producer"])] = told["at"]

    def unblock(self, told: Told) -> Iterator[Emit]:
        self._table.discard(entry("block", told["producer"]))
        yield from ()

    def view(self, told: Told) -> Iterator[Emit]:
        """Records one or more views of the feed."""
        memory = self._options.memory_us
        rate = Rate.read(self._meta.get("rate"))
        rate.add(told["at"], told.get("count", 1), memory, flashes=False)  # reloads are not a flash
        self._meta["rate"] = rate.written()
        self._meta["wholesale"] = told.get("wholesale", False)
        self._meta |= {name: told[name] for name in ("flow", "ratio") if name in told}
        yield from self._rated(rate.per_second(memory))

    def seen(self, told: Told) -> Iterator[Emit]:
        """Records the post up to which the feed was read."""
        self._meta["seen"] = max(self._meta.get("seen", []), told["upto"])
        yield from ()

    def side(self, told: Told) -> Iterator[Emit]:
        """Applies the producer's decision on the side of the pair."""
        producer = told["producer"]
        if self._followed(producer) != told["since"]:
            return
        self._leave_push(producer)
        if told["side"] == "pull":
            self._table[PULL + producer] = told["since"]
            return
        self._table.discard(PULL + producer)
        self._table[PUSH + producer] = [told["since"], told["from"]]
        if told["from"]:
            self._table[entry("from", time_text(told["from"]), producer)] = 0
            self._meta["from"] = max(told["from"], self._meta.get("from", 0))  # an upper bound
        self._take(told["items"], producer, told["from"])
        yield from ()

    def push(self, told: Told) -> Iterator[Emit]:
        """Stores posts of a producer on push that are new, changed or deleted."""
        known = self._table.get(PUSH + told["producer"])
        if known is not None and known[0] == told["since"]:
            self._take(told["items"], told["producer"], known[1])
            yield from self._faded(max(at for at, _, _ in told["items"]))

    def save(self) -> None:
        if self._meta != self._stored:
            self._table[META] = self._meta

    def _rated(self, rate: float) -> Iterator[Emit]:
        """Tells the producers if this view rate means a different class."""
        new_class = self._class(rate)
        if abs(new_class - self._meta["class"]) < BAND:
            return
        self._meta["class"] = new_class
        for producer, since in self._follows():
            yield self._tell(producer, "rated", since)

    def _faded(self, now: int) -> Iterator[Emit]:
        """After a push, lowers the rate if the consumer has not viewed its feed for long."""
        rate, memory = Rate.read(self._meta.get("rate")), self._options.memory_us
        if not rate.at or now - rate.at < memory * SILENT:
            return
        left = rate.per_second(memory, now)
        if left < GONE * rate.per_second(memory):
            self._meta["wholesale"] = False
        yield from self._rated(left)

    def _class(self, rate: float) -> int:
        """The class to report: that of the rate, or the consumer's decision for all of its
        producers."""
        if self._meta.get("wholesale"):
            return ALWAYS
        if not self._options.decides_together:
            return class_of(rate)
        before: Side = "push" if self._meta["class"] == ALWAYS else "pull"
        ratio = self._meta.get("ratio", self._options.ratio)
        ratio /= max(1, self._meta["follows"])  # a view pulls from each: that is its L in Lemma 2
        side = held(before, rate, self._meta.get("flow", 0.0), ratio, HOLD)
        return ALWAYS if side == "push" else NEVER

    def _take(self, items: list[list[Any]], producer: str, begin: int) -> None:
        floor = max(begin, self._meta["floor"])
        for at, post, value in items:
            if at < floor:
                continue
            name = item_entry(at, producer, post)
            exists = name in self._table
            if value is not None:
                self._table[name] = value
                self._meta["items"] += not exists
            elif exists:
                del self._table[name]
                self._meta["items"] -= 1
        if self._meta["items"] > 2 * self._options.keep:
            self._trim()

    def _trim(self) -> None:
        """Deletes the oldest items. From the floor on the items are complete."""
        surplus = self._meta["items"] - self._options.keep
        names = [name for name, _ in self._table.scan(ITEMS, after(ITEMS), limit=surplus)]
        floor = int(parts(names[-1])[1]) + 1
        stop = ITEMS + time_text(floor)
        for name, _ in [*self._table.scan(ITEMS, stop)]:
            del self._table[name]
            self._meta["items"] -= 1
        self._meta["floor"] = floor

    def _leave_push(self, producer: str) -> None:
        """Takes a pair off push and deletes all of its items."""
        known = self._table.get(PUSH + producer)
        if known is None:
            return
        del self._table[PUSH + producer]
        if known[1]:
            self._table.discard(entry("from", time_text(known[1]), producer))
        gone = [
            name for name, _ in self._table.scan(ITEMS, after(ITEMS)) if pushed_by(name) == producer
        ]
        for name in gone:
            del self._table[name]
        self._meta["items"] -= len(gone)

    def _followed(self, producer: str) -> int | None:
        """Returns when the producer was followed; None if it is not followed."""
        pulled: int | None = self._table.get(PULL + producer)
        if pulled is not None:
            return pulled
        pushed = self._table.get(PUSH + producer)
        return None if pushed is None else pushed[0]

    def _follows(self) -> Iterator[tuple[str, int]]:
        for name, since in self._table.scan(PULL, after(PULL)):
            yield name[len(PULL) :], since
        for name, (since, _) in self._table.scan(PUSH, after(PUSH)):
            yield name[len(PUSH) :], since

    def _tell(self, producer: str, kind: str, since: int) -> Emit:
        message = {
            "kind": kind,
            "consumer": self._key,
            "since": since,
            "class": self._meta["class"],
        }
        return emit(f"{self._name}.told", key=producer, value=message)
