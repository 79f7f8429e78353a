"""The producers of feeds: their posts, their followers, and pushing the one to the other.

An update with a table for each producer (see `names`). A post is stored, and a *pass* over the
followers is begun: from the class up whose consumers look often enough (Feeding Frenzy, 4.2), each
is sent what was posted. A pass makes at most `pushes` of them in one go, of a post to a follower;
what is left of it is kept in the table, the producer is said to be under way (`NAME.fanouts`), and
it goes on in the next batch. Whoever reads pulls from a producer that is under way, so that no feed
has half of a pass.

When the class that is needed changes (4.3), a pass tells the followers in between that they are now
on the other side, and sends what they need for it. A flash (5.5) moves pairs to pull, and the next
post after it moves them back, or, should none come, a timer. Passes run one after the other, and
send what a post is when they come to it: an edit or a delete never comes out of order.

Each pass, and each word to one consumer, has a time of its own, later than all before: events of a
time come in the order of their content, and a consumer must hear of a side in the order of the
decisions.

What a consumer's table says is what counts: a push that comes when the pair is on pull, or is no
more, is ignored there. So the set that is pushed to may be too large for a while, never too small.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from millstream.feeds.aggregating import Aggregating
from millstream.feeds.names import (
    META,
    after,
    class_text,
    entry,
    parts,
    post_entry,
    prefix,
)
from millstream.feeds.options import Options
from millstream.feeds.rates import ALWAYS, MOST, NEVER, Rate, class_from
from millstream.model.event import Emit, Event, SetTimer, Timer, emit, timer
from millstream.model.function import takes
from millstream.model.slate import Table

BAND = 3
"""Classes by which the one that is needed must differ before pairs change their side."""
TOGETHER = 100
"""Posts that one pass takes along."""
BY, POSTS = prefix("by"), prefix("post")
Told = dict[str, Any]


@dataclass(frozen=True)
class Producers:
    """The update function."""

    options: Options
    name: str
    __signature__ = takes("event", "slate")

    def __call__(self, event: Event, table: Table) -> Iterator[Emit | SetTimer]:
        producer = Producer(self.options, self.name, event.key, table, event.ts)
        told: Told = event.value
        yield from getattr(producer, told["kind"])(told)
        yield from producer.watch()
        yield from producer.save()


@dataclass(frozen=True)
class Calming:
    """The timer function: a flash is over although no post has come that would show it."""

    options: Options
    name: str
    __signature__ = takes("timer", "slate")

    def __call__(self, timer: Timer, table: Table) -> Iterator[Emit | SetTimer]:
        producer = Producer(self.options, self.name, timer.key, table, timer.ts)
        yield from producer.calm(timer.ts)
        yield from producer.watch()
        yield from producer.save()


class Producer:
    """One producer while an event of it is taken in; a method for each kind of event."""

    def __init__(self, options: Options, name: str, key: str, table: Table, now: int) -> None:
        self._options, self._name, self._key, self._table = options, name, key, table
        meta = table.get(META) or {}
        self._sent: int = max(now, meta.get("sent", 0))
        """The time of what was said last."""
        self.rate = Rate.read(meta.get("rate"))
        self._ratio: float = meta.get("ratio", options.ratio)
        self._aim: int = meta.get("aim", -1)
        """The class that followers are told by; with all passes done, also the one in `need`."""
        self._need: int = meta.get("need", -1)
        """The class from which up all followers are on push."""
        self._passes: list[int] = meta.get("passes", [0, 0])
        self._more: bool = meta.get("more", False)
        """Whether an event is on its way that lets the passes go on."""
        self._under_way: bool = meta.get("under_way", False)
        """Whether readers were told."""
        self._aggregating = Aggregating(name, key, table)
        self._is_source: bool = meta.get("source", False)
        """Whether its posts go on to an aggregated producer."""
        self._sweep: str | None = meta.get("sweep")
        """Up to where references to former sources may be left."""
        self._is_watched: bool = meta.get("watched", False)
        """Whether a timer is set for the end of a flash."""
        self.counts: dict[str, int] = meta.get("counts", {"posts": 0, "followers": 0})
        if self._aim < 0:
            self._aim = self._need = self._needed()

    def post(self, told: Told) -> Iterator[Emit]:
        at, post = told["at"], told["id"]
        if entry("id", post) in self._table:
            return  # sent again
        self._table[entry("id", post)] = at
        self._table[post_entry(at, post)] = {"v": told["value"]}
        self.counts["posts"] += 1
        self.rate.add(at, 1.0, self._options.memory_us)
        yield from self._reconsider(told)
        yield from self._push([at, post])
        if self._is_source:
            yield from self._aggregating.passed_on(at, post, True)

    def edit(self, told: Told) -> Iterator[Emit]:
        at: int | None = self._table.get(entry("id", told["id"]))
        if at:
            self._table[post_entry(at, told["id"])] = {"v": told["value"], "e": told["at"]}
            yield from self._push([at, told["id"]])

    def delete(self, told: Told) -> Iterator[Emit]:
        at: int | None = self._table.get(entry("id", told["id"]))
        if at:
            self._table[entry("id", told["id"])] = 0
            del self._table[post_entry(at, told["id"])]
            self.counts["posts"] -= 1
            yield from self._push([at, told["id"]])
            if self._is_source:
                yield from self._aggregating.passed_on(at, told["id"], False)

    def aggregate(self, told: Told) -> Iterator[Emit]:
        """It has other producers' posts too, from now on or no more."""
        if (yield from self._aggregating.replaced(told)):
            self._sweep = after(POSTS)

    def joined(self, told: Told) -> Iterator[Emit]:
        """It is a source of an aggregated producer."""
        self._is_source = True
        yield from self._aggregating.joined(told, self._options.backfill)

    def parted(self, told: Told) -> Iterator[Emit]:
        yield from self._aggregating.parted(told)
        self._is_source = self._aggregating.is_source()

    def referred(self, told: Told) -> Iterator[Emit]:
        """Posts of a source: new, or gone."""
        yield from self._aggregating.arrived(told)
        changed = []
        for at, post, more in self._aggregating.taken(told):
            changed.append([at, post])
            self.counts["posts"] += more
            if more > 0 and at >= told["since"]:  # what a new source brings is no rate
                self.rate.add(at, 1.0, self._options.memory_us)
        if changed:
            yield from self._reconsider(told)
            yield from self._push(*changed)

    def followed(self, told: Told) -> Iterator[Emit]:
        """A consumer follows, and looks as often as its class says; it is on pull so far."""
        if self._drop(told["consumer"]) is None:
            self.counts["followers"] += 1
        self._keep(told)
        if told["class"] >= self._aim:
            yield self._changed(told, "push")

    def rated(self, told: Told) -> Iterator[Emit]:
        """A follower looks more often, or less, than it did."""
        known = self._table.get(entry("of", told["consumer"]))
        if known is None or known[1] != told["since"]:
            return
        was = known[0]
        self._drop(told["consumer"])
        self._keep(told)
        side = "push" if told["class"] >= self._aim else "pull"
        before = "push" if was >= self._aim else "pull"
        if side != before or self._is_pending:  # a pass may have gone by, or may not come to it
            yield self._changed(told, side)

    def unfollowed(self, told: Told) -> Iterator[Emit]:
        known = self._table.get(entry("of", told["consumer"]))
        if known is not None and known[1] == told["since"]:
            self._drop(told["consumer"])
            self.counts["followers"] -= 1
        yield from ()

    def calm(self, now: int) -> Iterator[Emit]:
        """A flash may be over; if more has come since, it is not yet."""
        self._is_watched = False
        if self.rate.calmed(now):
            yield from self._reconsider({})

    def watch(self) -> Iterator[SetTimer]:
        """Of a flash: see to it that its end is noticed. One timer at a time, which is not moved
        with each post."""
        if self.rate.peak and not self._is_watched and not self._options.decides_together:
            self._is_watched = True
            yield timer(at=self.rate.over, name="calm")

    def more(self, told: Told) -> Iterator[Emit]:
        """Go on with the passes, and with sweeping."""
        self._more = False
        yield from self._go_on()
        if self._sweep is not None:
            self._sweep, gone = self._aggregating.swept(self._sweep, self._options.pushes)
            self.counts["posts"] -= gone

    def save(self) -> Iterator[Emit]:
        """Store what is known, and see to it that what is left is done."""
        if (self._is_pending or self._sweep is not None) and not self._more:
            self._more = True
            yield emit(f"{self._name}.more", value={"kind": "more"})
        if self._is_pending != self._under_way:
            self._under_way = self._is_pending
            told = {"producer": self._key, "under_way": self._under_way}
            yield emit(f"{self._name}.fanout", key="", value=told)
        meta = {
            "rate": self.rate.written(),
            "ratio": self._ratio,
            "aim": self._aim,
            "need": self._need,
            "counts": self.counts,
            "sent": self._sent,
        }
        if self._is_watched:
            meta["watched"] = True
        if self._is_source:
            meta["source"] = True
        if self._sweep is not None:
            meta["sweep"] = self._sweep
        if self._is_pending or self._passes[0] or self._more:
            meta |= {"passes": self._passes, "more": self._more, "under_way": self._under_way}
        self._table[META] = meta

    @property
    def _is_pending(self) -> bool:
        return self._passes[0] < self._passes[1]

    def _needed(self) -> int:
        """The class of consumers from which up pushing costs less than pulling."""
        if self._options.policy != "hybrid":
            return NEVER if self._options.policy == "push" else ALWAYS + 1
        if self._options.decides_together:
            return MOST + 1  # each consumer decides for all of its producers, and says so
        return class_from(self.rate.per_second(self._options.memory_us) * self._ratio)

    def _reconsider(self, told: Told) -> Iterator[Emit]:
        """After a post: is the class that is needed another one by now?"""
        self._ratio = told.get("ratio", self._ratio)
        needed = self._needed()
        if abs(needed - self._aim) < BAND:
            return
        low, high = sorted((needed, self._aim))
        side = "push" if needed < self._aim else "pull"
        self._aim = needed
        yield from self._begin({"side": side, "low": low, "high": high})

    def _push(self, *items: list[Any]) -> Iterator[Emit]:
        """Send what some posts are now to all who are on push."""
        last = entry("pass", f"{self._passes[1] - 1:010d}")
        waiting = self._table.get(last) if self._is_pending else None
        if waiting is not None and "items" in waiting and not waiting.get("at"):  # not begun
            together = [*waiting["items"], *(one for one in items if one not in waiting["items"])]
            if len(together) <= TOGETHER:
                self._table[last] = {"items": together}
                return
        yield from self._begin({"items": [*items]})

    def _begin(self, walk: dict[str, Any]) -> Iterator[Emit]:
        """Begin a pass, or have it wait for those before it."""
        if not self._is_pending:
            _, done = yield from self._walked(walk, self._options.pushes)
            if done:
                return
        self._table[entry("pass", f"{self._passes[1]:010d}")] = walk
        self._passes[1] += 1

    def _go_on(self) -> Iterator[Emit]:
        left = self._options.pushes
        while left > 0 and self._is_pending:
            name = entry("pass", f"{self._passes[0]:010d}")
            walk = self._table[name]
            left, done = yield from self._walked(walk, left)
            if done:
                del self._table[name]
                self._passes[0] += 1
            else:
                self._table[name] = walk

    def _walked(self, walk: dict[str, Any], left: int) -> Generator[Emit, None, tuple[int, bool]]:
        """Go on with a pass, with so many pushes: how many are left, and whether it is done."""
        self._sent += 1
        if "items" in walk:
            value: Told = {"kind": "push", "producer": self._key, "items": self._now(walk)}
            low, stop = self._need, after(BY)
        else:
            value = self._side(walk["side"])
            low, stop = walk["low"], BY + class_text(walk["high"])
        start = walk["at"] + "\0" if walk.get("at") else BY + class_text(low)
        each = max(1, len(value.get("items", ())))
        most, count = max(1, left // each), 0
        for name, since in self._table.scan(start, stop, limit=most):
            yield self._say(parts(name)[2], {**value, "since": since})
            walk["at"], count = name, count + 1
        done = count < most
        if done and "side" in walk:
            self._need = walk["low"] if walk["side"] == "push" else walk["high"]
        return left - count * each, done

    def _now(self, walk: dict[str, Any]) -> list[list[Any]]:
        """The posts of a pass as they are now; None for one that is no more."""
        return [[at, post, self._table.get(post_entry(at, post))] for at, post in walk["items"]]

    def _side(self, side: str) -> Told:
        """What a consumer is told whose pair is on another side, with the newest posts if that is
        push."""
        told: Told = {"kind": "side", "producer": self._key, "side": side}
        if side == "push":
            told["items"], told["from"] = self._newest()
        return told

    def _changed(self, told: Told, side: str) -> Emit:
        """Tell the one consumer that an event is of that its pair is on another side."""
        self._sent += 1
        return self._say(told["consumer"], {**self._side(side), "since": told["since"]})

    def _say(self, consumer: str, value: Told) -> Emit:
        return emit(f"{self._name}.push", key=consumer, value=value, ts=self._sent)

    def _newest(self) -> tuple[list[list[Any]], int]:
        """The newest posts, and the time from which on all posts are among them."""
        most = self._options.backfill
        found = list(islice(self._table.scan(POSTS, after(POSTS), reverse=True), most + 1))
        items = [[int(parts(name)[1]), parts(name)[2], value] for name, value in found]
        if len(items) <= most:
            return items, 0
        begin = items[-1][0] + 1
        return [item for item in items if item[0] >= begin], begin

    def _keep(self, told: Told) -> None:
        consumer, of, since = told["consumer"], told["class"], told["since"]
        self._table[entry("of", consumer)] = [of, since]
        self._table[entry("by", class_text(of), consumer)] = since

    def _drop(self, consumer: str) -> int | None:
        """Take a follower out; the class that it had."""
        known = self._table.get(entry("of", consumer))
        if known is None:
            return None
        del self._table[entry("of", consumer)]
        del self._table[entry("by", class_text(known[0]), consumer)]
        was: int = known[0]
        return was
