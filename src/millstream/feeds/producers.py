"""The producers of feeds: stores their posts and followers, and pushes posts to followers.

This is an update with one table for each producer (see `names`). A post is stored, and then a
*pass* over the followers starts. It sends the post to every follower of a rate class that is high
enough, which means that its consumer views the feed often enough (Feeding Frenzy, 4.2). A pass
makes at most `pushes` pushes for one event, each of one post to one follower. The rest of the pass
is kept in the table, the producer is marked as under way (`NAME.fanouts`), and the pass continues
in the next batch. Readers pull from a producer that is under way, so no feed shows half of a pass.

When the lowest class to push to changes (4.3), a pass tells the followers in the affected classes
that they are now on the other side, and sends what they need for it. A flash (5.5) moves pairs to
pull. The next post after the flash moves them back; if no post comes, a timer does. Passes run one
after the other, and send each post as it is when the pass reaches it, so an edit or a delete is
never applied out of order.

Each pass, and each message to a single consumer, has its own timestamp, later than all before it.
Events with equal timestamps are ordered by content, but a consumer must receive changes of side in
the order in which they were decided.

The consumer's table is authoritative: it ignores a push for a pair that is on pull or no longer
exists. So the set of followers that is pushed to may be too large for a while, but never too small.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from millstream.feeds.aggregated_producers import Aggregating
from millstream.feeds.names import (
    META,
    after,
    class_text,
    entry,
    parts,
    post_entry,
    prefix,
)
from millstream.feeds.options import FeedOptions
from millstream.feeds.rates import ALWAYS, MOST, NEVER, Rate, class_from
from millstream.model.event import Emit, Event, SetTimer, Timer, emit, timer
from millstream.model.function import takes
from millstream.model.slate import Table

BAND = 3
"""The lowest class to push to must move by at least this many classes before pairs change side."""
TOGETHER = 100
"""The maximum number of posts in one pass."""
BY, POSTS = prefix("by"), prefix("post")
Told = dict[str, Any]


@dataclass(frozen=True)
class Producers:
    """The update function."""

    options: FeedOptions
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
    """The timer function: detects the end of a flash that no later post has revealed."""

    options: FeedOptions
    name: str
    __signature__ = takes("timer", "slate")

    def __call__(self, timer: Timer, table: Table) -> Iterator[Emit | SetTimer]:
        producer = Producer(self.options, self.name, timer.key, table, timer.ts)
        yield from producer.calm(timer.ts)
        yield from producer.watch()
        yield from producer.save()


class Producer:
    """One producer while it processes an event. There is one method for each kind of event."""

    def __init__(self, options: FeedOptions, name: str, key: str, table: Table, now: int) -> None:
        self._options, self._name, self._key, self._table = options, name, key, table
        meta = table.get(META) or {}
        self._sent: int = max(now, meta.get("sent", 0))
        """The timestamp of the last message sent."""
        self.rate = Rate.read(meta.get("rate"))
        self._ratio: float = meta.get("ratio", options.ratio)
        self._aim: int = meta.get("aim", -1)
        """The lowest class to push to, as decided. Equal to `need` when all passes are done."""
        self._need: int = meta.get("need", -1)
        """All followers of this class and above are on push."""
        self._passes: list[int] = meta.get("passes", [0, 0])
        self._more: bool = meta.get("more", False)
        """True if an event is on its way that continues the passes."""
        self._under_way: bool = meta.get("under_way", False)
        """True if the table of fan-outs lists this producer as under way."""
        self._aggregating = Aggregating(name, key, table)
        self._is_source: bool = meta.get("source", False)
        """True if the posts are passed on to an aggregated producer."""
        self._sweep: str | None = meta.get("sweep")
        """References to former sources may remain before this entry."""
        self._is_watched: bool = meta.get("watched", False)
        """True if a timer is set for the end of a flash."""
        self.counts: dict[str, int] = meta.get("counts", {"posts": 0, "followers": 0})
        if self._aim < 0:
            self._aim = self._need = self._needed()

    def post(self, told: Told) -> Iterator[Emit]:
        at, post = told["at"], told["id"]
        if entry("id", post) in self._table:
            return  # a duplicate
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
        """Replaces the sources whose posts this producer aggregates."""
        if (yield from self._aggregating.replaced(told)):
            self._sweep = after(POSTS)

    def joined(self, told: Told) -> Iterator[Emit]:
        """Records that this producer is a source of an aggregated producer."""
        self._is_source = True
        yield from self._aggregating.joined(told, self._options.backfill)

    def parted(self, told: Told) -> Iterator[Emit]:
        yield from self._aggregating.parted(told)
        self._is_source = self._aggregating.is_source()

    def referred(self, told: Told) -> Iterator[Emit]:
        """Takes in new and deleted posts of a source."""
        yield from self._aggregating.arrived(told)
        changed = []
        for at, post, more in self._aggregating.taken(told):
            changed.append([at, post])
            self.counts["posts"] += more
            if more > 0 and at >= told["since"]:  # a new source's backfill does not count
                self.rate.add(at, 1.0, self._options.memory_us)
        if changed:
            yield from self._reconsider(told)
            yield from self._push(*changed)

    def followed(self, told: Told) -> Iterator[Emit]:
        """Adds a follower with its rate class. Its pair is still on pull."""
        if self._drop(told["consumer"]) is None:
            self.counts["followers"] += 1
        self._keep(told)
        if told["class"] >= self._aim:
            yield self._changed(told, "push")

    def rated(self, told: Told) -> Iterator[Emit]:
        """Moves a follower to a new rate class."""
        known = self._table.get(entry("of", told["consumer"]))
        if known is None or known[1] != told["since"]:
            return
        old_class = known[0]
        self._drop(told["consumer"])
        self._keep(told)
        side = "push" if told["class"] >= self._aim else "pull"
        old_side = "push" if old_class >= self._aim else "pull"
        if side != old_side or self._is_pending:  # a pass may have missed this follower
            yield self._changed(told, side)

    def unfollowed(self, told: Told) -> Iterator[Emit]:
        known = self._table.get(entry("of", told["consumer"]))
        if known is not None and known[1] == told["since"]:
            self._drop(told["consumer"])
            self.counts["followers"] -= 1
        yield from ()

    def calm(self, now: int) -> Iterator[Emit]:
        """Handles the timer: reconsiders the sides unless later posts have prolonged the flash."""
        self._is_watched = False
        if self.rate.calmed(now):
            yield from self._reconsider({})

    def watch(self) -> Iterator[SetTimer]:
        """Sets a timer for the end of a flash. There is only one at a time, and later posts do not
        move it."""
        if self.rate.peak and not self._is_watched and not self._options.decides_together:
            self._is_watched = True
            yield timer(at=self.rate.over, name="calm")

    def more(self, told: Told) -> Iterator[Emit]:
        """Continues the passes and the sweep of references."""
        self._more = False
        yield from self._go_on()
        if self._sweep is not None:
            self._sweep, gone = self._aggregating.swept(self._sweep, self._options.pushes)
            self.counts["posts"] -= gone

    def save(self) -> Iterator[Emit]:
        """Stores the metadata, and emits the events that continue unfinished passes."""
        if (self._is_pending or self._sweep is not None) and not self._more:
            self._more = True
            yield emit(f"{self._name}.more", value={"kind": "more"})
        if self._is_pending != self._under_way:
            self._under_way = self._is_pending
            message = {"producer": self._key, "under_way": self._under_way}
            yield emit(f"{self._name}.fanout", key="", value=message)
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
        """The lowest class of consumers for which a push costs less than a pull."""
        if self._options.policy != "hybrid":
            return NEVER if self._options.policy == "push" else ALWAYS + 1
        if self._options.decides_together:
            return MOST + 1  # each consumer decides for all of its producers
        return class_from(self.rate.per_second(self._options.memory_us) * self._ratio)

    def _reconsider(self, told: Told) -> Iterator[Emit]:
        """Starts a pass if the lowest class to push to has moved far enough."""
        self._ratio = told.get("ratio", self._ratio)
        needed = self._needed()
        if abs(needed - self._aim) < BAND:
            return
        low, high = sorted((needed, self._aim))
        side = "push" if needed < self._aim else "pull"
        self._aim = needed
        yield from self._begin({"side": side, "low": low, "high": high})

    def _push(self, *items: list[Any]) -> Iterator[Emit]:
        """Sends the current state of some posts to all followers on push."""
        last = entry("pass", f"{self._passes[1] - 1:010d}")
        waiting = self._table.get(last) if self._is_pending else None
        if waiting is not None and "items" in waiting and not waiting.get("at"):  # not started yet
            together = [
                *waiting["items"],
                *(item for item in items if item not in waiting["items"]),
            ]
            if len(together) <= TOGETHER:
                self._table[last] = {"items": together}
                return
        yield from self._begin({"items": [*items]})

    def _begin(self, walk: dict[str, Any]) -> Iterator[Emit]:
        """Starts a pass, or queues it behind the passes before it."""
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
        """Continues a pass with up to `left` pushes. Returns the pushes left and whether the pass
        is done."""
        self._sent += 1
        if "items" in walk:
            value: Told = {"kind": "push", "producer": self._key, "items": self._now(walk)}
            low, stop = self._need, after(BY)
        else:
            value = self._side(walk["side"])
            low, stop = walk["low"], BY + class_text(walk["high"])
        start = walk["at"] + "\0" if walk.get("at") else BY + class_text(low)
        pushes_each = max(1, len(value.get("items", ())))
        most, count = max(1, left // pushes_each), 0
        for name, since in self._table.scan(start, stop, limit=most):
            yield self._say(parts(name)[2], {**value, "since": since})
            walk["at"], count = name, count + 1
        done = count < most
        if done and "side" in walk:
            self._need = walk["low"] if walk["side"] == "push" else walk["high"]
        return left - count * pushes_each, done

    def _now(self, walk: dict[str, Any]) -> list[list[Any]]:
        """The posts of a pass as they are now. The value of a deleted post is None."""
        return [[at, post, self._table.get(post_entry(at, post))] for at, post in walk["items"]]

    def _side(self, side: str) -> Told:
        """The message about a change of side. If the new side is push, it includes the newest
        posts."""
        message: Told = {"kind": "side", "producer": self._key, "side": side}
        if side == "push":
            message["items"], message["from"] = self._newest()
        return message

    def _changed(self, told: Told, side: str) -> Emit:
        """Tells the consumer of an event that its pair has changed side."""
        self._sent += 1
        return self._say(told["consumer"], {**self._side(side), "since": told["since"]})

    def _say(self, consumer: str, value: Told) -> Emit:
        return emit(f"{self._name}.push", key=consumer, value=value, ts=self._sent)

    def _newest(self) -> tuple[list[list[Any]], int]:
        """Returns the newest posts, and the time from which they are complete."""
        most = self._options.backfill
        rows = list(islice(self._table.scan(POSTS, after(POSTS), reverse=True), most + 1))
        items = [[int(parts(name)[1]), parts(name)[2], value] for name, value in rows]
        if len(items) <= most:
            return items, 0
        begin = items[-1][0] + 1
        return [item for item in items if item[0] >= begin], begin

    def _keep(self, told: Told) -> None:
        consumer, rate_class, since = told["consumer"], told["class"], told["since"]
        self._table[entry("of", consumer)] = [rate_class, since]
        self._table[entry("by", class_text(rate_class), consumer)] = since

    def _drop(self, consumer: str) -> int | None:
        """Removes a follower. Returns the class that it had, or None if it was not a follower."""
        known = self._table.get(entry("of", consumer))
        if known is None:
            return None
        del self._table[entry("of", consumer)]
        del self._table[entry("by", class_text(known[0]), consumer)]
        old_class: int = known[0]
        return old_class
