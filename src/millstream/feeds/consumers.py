"""The consumers of feeds: whom they follow, how often they look, and what was pushed to them.

An update with a table for each consumer (see `names`). A new follow is on pull, so that its old
posts are seen at once; the producer is told, and says in the next batch whether the pair is better
on push. Pushed posts are items of the table, ordered by time. No more than twice `keep` of them
stay; what is older than the `floor` is pulled.

How often a consumer looks is told to its producers only when that has changed by `BAND` classes.
With `decide="per-consumer"` the consumer decides by Lemma 2 for all of its producers, and tells
them `ALWAYS` or `NEVER`. One that looks no more sends no views to say so: what is pushed to it
shows how long ago the last one was, and in time its pairs go back to pull.
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
from millstream.feeds.options import Options
from millstream.feeds.policy import Side, held
from millstream.feeds.rates import ALWAYS, NEVER, Rate, class_of
from millstream.model.event import Emit, Event, emit
from millstream.model.function import takes
from millstream.model.slate import Table

BAND = 3
"""Classes by which a rate must have changed before producers are told: a factor of 1.7."""
HOLD = 1.5
"""By what factor a consumer must be past the threshold before all of its producers change side."""
SILENT = 1 / 4
"""The part of the memory without a view after which it is seen how much a rate has faded."""
GONE = 1 / 8
"""With this part of the rate left, even one that was to have all on push has it no more."""
ITEMS, PULL, PUSH = prefix("item"), prefix("pull"), prefix("push")
Told = dict[str, Any]


@dataclass(frozen=True)
class Consumers:
    """The update function."""

    options: Options
    name: str
    __signature__ = takes("event", "slate")

    def __call__(self, event: Event, table: Table) -> Iterator[Emit]:
        consumer = Consumer(self.options, self.name, event.key, table)
        told: Told = event.value
        yield from getattr(consumer, told["kind"])(told)
        consumer.save()


class Consumer:
    """One consumer while an event of it is taken in; a method for each kind of event."""

    def __init__(self, options: Options, name: str, key: str, table: Table) -> None:
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
        """The feed was looked at, once or several times."""
        memory = self._options.memory_us
        rate = Rate.read(self._meta.get("rate"))
        rate.add(told["at"], told.get("count", 1), memory, flashes=False)  # a reload is no flash
        self._meta["rate"] = rate.written()
        self._meta["wholesale"] = told.get("wholesale", False)
        self._meta |= {name: told[name] for name in ("flow", "ratio") if name in told}
        yield from self._rated(rate.per_second(memory))

    def seen(self, told: Told) -> Iterator[Emit]:
        """The feed was read up to a post."""
        self._meta["seen"] = max(self._meta.get("seen", []), told["upto"])
        yield from ()

    def side(self, told: Told) -> Iterator[Emit]:
        """The producer has decided on the pair."""
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
            self._meta["from"] = max(told["from"], self._meta.get("from", 0))  # stays, as a bound
        self._take(told["items"], producer, told["from"])
        yield from ()

    def push(self, told: Told) -> Iterator[Emit]:
        """Posts of a producer on push: new, changed or gone."""
        known = self._table.get(PUSH + told["producer"])
        if known is not None and known[0] == told["since"]:
            self._take(told["items"], told["producer"], known[1])
            yield from self._faded(max(at for at, _, _ in told["items"]))

    def save(self) -> None:
        if self._meta != self._stored:
            self._table[META] = self._meta

    def _rated(self, rate: float) -> Iterator[Emit]:
        """The consumer looks so often; its producers are told if that means another class."""
        of = self._class(rate)
        if abs(of - self._meta["class"]) < BAND:
            return
        self._meta["class"] = of
        for producer, since in self._follows():
            yield self._tell(producer, "rated", since)

    def _faded(self, now: int) -> Iterator[Emit]:
        """A push has come: has the consumer looked of late?"""
        rate, memory = Rate.read(self._meta.get("rate")), self._options.memory_us
        if not rate.at or now - rate.at < memory * SILENT:
            return
        left = rate.per_second(memory, now)
        if left < GONE * rate.per_second(memory):
            self._meta["wholesale"] = False
        yield from self._rated(left)

    def _class(self, rate: float) -> int:
        """What producers are told: the class of the rate, or what it means for all of them."""
        if self._meta.get("wholesale"):
            return ALWAYS
        if not self._options.decides_together:
            return class_of(rate)
        before: Side = "push" if self._meta["class"] == ALWAYS else "pull"
        ratio = self._meta.get("ratio", self._options.ratio)
        ratio /= max(1, self._meta["follows"])  # a look pulls from each: that is its L in Lemma 2
        side = held(before, rate, self._meta.get("flow", 0.0), ratio, HOLD)
        return ALWAYS if side == "push" else NEVER

    def _take(self, items: list[list[Any]], producer: str, begin: int) -> None:
        floor = max(begin, self._meta["floor"])
        for at, post, value in items:
            if at < floor:
                continue
            name = item_entry(at, producer, post)
            there = name in self._table
            if value is not None:
                self._table[name] = value
                self._meta["items"] += not there
            elif there:
                del self._table[name]
                self._meta["items"] -= 1
        if self._meta["items"] > 2 * self._options.keep:
            self._trim()

    def _trim(self) -> None:
        """Let go of the oldest items; from the floor on all are there."""
        going = self._meta["items"] - self._options.keep
        names = [name for name, _ in self._table.scan(ITEMS, after(ITEMS), limit=going)]
        floor = int(parts(names[-1])[1]) + 1
        stop = ITEMS + time_text(floor)
        for name, _ in [*self._table.scan(ITEMS, stop)]:
            del self._table[name]
            self._meta["items"] -= 1
        self._meta["floor"] = floor

    def _leave_push(self, producer: str) -> None:
        """The pair is no longer on push: nothing of it stays."""
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
        """Since when a producer is followed; None if it is not."""
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
        told = {
            "kind": kind,
            "consumer": self._key,
            "since": since,
            "class": self._meta["class"],
        }
        return emit(f"{self._name}.told", key=producer, value=told)
