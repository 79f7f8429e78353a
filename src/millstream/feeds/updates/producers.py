"""The producers of feeds: stores their posts and followers, and pushes posts to followers.

This is an update with one table for each producer (see `names`). A post is stored, and then a
*pass* over the followers starts. It sends the post to every follower whose rate class is high
enough, that is, who views the feed often enough (Feeding Frenzy, 4.2). A pass makes at most
`pushes` pushes for one event, each of one post to one follower. The rest of the pass is kept in the
table, the producer is marked as under way (`NAME.fanouts`), and the pass continues in the next
batch. Readers pull from a producer that is under way, so no feed shows half of a pass.

When the lowest class to push to changes (4.3), a pass tells the followers in the affected classes
that they are now on the other side, and sends what they need for it. A flash (5.5) moves pairs to
pull. The next post after the flash moves them back; if no post comes, a timer does. Passes run one
after the other, and send each post as it is when the pass reaches it, so an edit or a delete is
never applied out of order.

Each pass, and each message to a single consumer, has its own timestamp, later than all before it.
Events with equal timestamps are ordered by content, but a consumer must receive changes of side in
the order in which they were decided.

The consumer's table is authoritative: the consumer ignores a push for a pair that is on pull or no
longer exists. So the set of followers that is pushed to may be too large for a while, but never too
small.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, get_args

from msgspec import convert
from msgspec.structs import replace

from millstream.feeds.messages import (
    Followed,
    FollowerMessage,
    More,
    ProducerEvent,
    Push,
    PushedPost,
    Rated,
    Referred,
    SideChange,
    SourceJoined,
    SourceParted,
    UnderWay,
    Unfollowed,
)
from millstream.feeds.names import META, after, class_text, entry, parts, post_entry, prefix
from millstream.feeds.options import FeedOptions
from millstream.feeds.policy.rates import ALWAYS, MOST, NEVER, Rate
from millstream.feeds.policy.sides import Side, lowest_pushed_class
from millstream.feeds.records import (
    AggregateRecord,
    DeleteRecord,
    EditRecord,
    PostChange,
    PostRecord,
)
from millstream.feeds.states import PostState, post_after
from millstream.feeds.stored_rows import (
    FollowerRow,
    PassNumbers,
    PassRow,
    PostKey,
    PostPassRow,
    ProducerMeta,
    SidePassRow,
    read_pass,
    read_row,
)
from millstream.feeds.updates.aggregated_producers import Aggregating
from millstream.model.event import Emit, Event, SetTimer, Timer, emit, timer
from millstream.model.function import takes
from millstream.model.slate import Table

BAND = 3
"""The lowest class to push to must move by at least this many classes before pairs change side."""
TOGETHER = 100
"""The maximum number of posts in one pass."""
BY, POSTS = prefix("by"), prefix("post")


@dataclass(frozen=True)
class Producers:
    """The update function."""

    options: FeedOptions
    name: str
    __signature__ = takes("event", "slate")

    def __call__(self, event: Event, table: Table) -> Iterator[Emit | SetTimer]:
        producer = Producer(self.options, self.name, event.key, table, event.ts)
        message = convert(event.value, ProducerEvent)
        yield from HANDLERS[type(message)](producer, message)
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
    """One producer while it processes an event. `HANDLERS` names the method for each kind."""

    def __init__(self, options: FeedOptions, name: str, key: str, table: Table, now: int) -> None:
        self._options, self._name, self._key, self._table = options, name, key, table
        self._aggregating = Aggregating(name, key, table)
        meta = read_row(table.get(META), ProducerMeta)
        if meta is None:
            lowest = self._lowest_class(Rate(), options.ratio)
            meta = ProducerMeta(ratio=options.ratio, aim=lowest, need=lowest)
        meta.sent = max(now, meta.sent)
        self._meta = meta

    def change_post(self, record: PostChange) -> Iterator[Emit]:
        """Adds, edits or deletes a post."""
        known = entry("id", record.id)
        before = PostState(self._table.get(known))
        now = post_after(before, record)
        if now is before:
            return  # a duplicate, or no such post
        if now.at != before.at:
            self._table[known] = now.at
        if now.at:
            at = now.at
            self._table[post_entry(at, record.id)] = now.row
        else:
            at = before.at or 0
            del self._table[post_entry(at, record.id)]
        if isinstance(record, PostRecord):
            self._meta.counts.posts += 1
            self._meta.rate.add(at, 1.0, self._options.memory_us)
            yield from self._reconsider(record.ratio)
        elif isinstance(record, DeleteRecord):
            self._meta.counts.posts -= 1
        yield from self._push(PostKey(at, record.id))
        if self._meta.is_source and not isinstance(record, EditRecord):
            yield from self._aggregating.passed_on(at, record.id, bool(now.at))

    def aggregate(self, record: AggregateRecord) -> Iterator[Emit]:
        """Replaces the sources whose posts this producer aggregates."""
        if (yield from self._aggregating.replaced(record)):
            self._meta.sweep = after(POSTS)

    def joined(self, message: SourceJoined) -> Iterator[Emit]:
        """Records that this producer is a source of an aggregated producer."""
        self._meta.is_source = True
        yield from self._aggregating.joined(message, self._options.backfill)

    def parted(self, message: SourceParted) -> Iterator[Emit]:
        yield from self._aggregating.parted(message)
        self._meta.is_source = self._aggregating.is_source()

    def referred(self, message: Referred) -> Iterator[Emit]:
        """Takes in new and deleted posts of a source."""
        yield from self._aggregating.arrived(message)
        changed = []
        for post, more in self._aggregating.taken(message):
            changed.append(post)
            self._meta.counts.posts += more
            if more > 0 and post.at >= message.since:  # a new source's backfill does not count
                self._meta.rate.add(post.at, 1.0, self._options.memory_us)
        if changed:
            yield from self._reconsider(None)
            yield from self._push(*changed)

    def followed(self, message: Followed) -> Iterator[Emit]:
        """Adds a follower with its rate class. Its pair is still on pull."""
        if self._drop(message.consumer) is None:
            self._meta.counts.followers += 1
        self._keep(message)
        if message.rate_class >= self._meta.aim:
            yield self._changed(message, "push")

    def rated(self, message: Rated) -> Iterator[Emit]:
        """Moves a follower to a new rate class."""
        follower = self._follower(message.consumer)
        if follower is None or follower.since != message.since:
            return
        self._drop(message.consumer)
        self._keep(message)
        side: Side = "push" if message.rate_class >= self._meta.aim else "pull"
        old_side = "push" if follower.rate_class >= self._meta.aim else "pull"
        if side != old_side or self._meta.is_pending:  # a pass may have missed this follower
            yield self._changed(message, side)

    def unfollowed(self, message: Unfollowed) -> Iterator[Emit]:
        follower = self._follower(message.consumer)
        if follower is not None and follower.since == message.since:
            self._drop(message.consumer)
            self._meta.counts.followers -= 1
        yield from ()

    def calm(self, now: int) -> Iterator[Emit]:
        """Handles the timer: reconsiders the sides unless later posts have prolonged the flash."""
        self._meta.is_watched = False
        if self._meta.rate.calmed(now):
            yield from self._reconsider(None)

    def watch(self) -> Iterator[SetTimer]:
        """Sets a timer for the end of a flash. There is only one at a time, and later posts do not
        move it."""
        rate = self._meta.rate
        if rate.peak and not self._meta.is_watched and not self._options.decides_together:
            self._meta.is_watched = True
            yield timer(at=rate.over, name="calm")

    def more(self, _: More) -> Iterator[Emit]:
        """Continues the passes and the sweep of references."""
        self._meta.has_more = False
        yield from self._go_on()
        if self._meta.sweep is not None:
            swept = self._aggregating.swept(self._meta.sweep, self._options.pushes)
            self._meta.sweep, gone = swept
            self._meta.counts.posts -= gone

    def save(self) -> Iterator[Emit]:
        """Stores the metadata, and emits the events that continue unfinished passes."""
        meta = self._meta
        if (meta.is_pending or meta.sweep is not None) and not meta.has_more:
            meta.has_more = True
            yield emit(f"{self._name}.more", value=More())
        if meta.is_pending != meta.under_way:
            meta.under_way = meta.is_pending
            message = UnderWay(self._key, meta.under_way)
            yield emit(f"{self._name}.fanout", key="", value=message)
        self._table[META] = replace(meta, rate=meta.rate.rounded())

    def _lowest_class(self, rate: Rate, ratio: float) -> int:
        """The lowest class of consumers for which a push costs less than a pull."""
        if self._options.policy != "hybrid":
            return NEVER if self._options.policy == "push" else ALWAYS + 1
        if self._options.decides_together:
            return MOST + 1  # each consumer decides for all of its producers
        return lowest_pushed_class(rate.per_second(self._options.memory_us), ratio)

    def _reconsider(self, ratio: float | None) -> Iterator[Emit]:
        """Starts a pass if the lowest class to push to has moved far enough. `ratio` is a new
        ratio, if one was measured."""
        meta = self._meta
        if ratio is not None:
            meta.ratio = ratio
        lowest = self._lowest_class(meta.rate, meta.ratio)
        if abs(lowest - meta.aim) < BAND:
            return
        low, high = sorted((lowest, meta.aim))
        side: Side = "push" if lowest < meta.aim else "pull"
        meta.aim = lowest
        yield from self._begin(SidePassRow(side, low, high))

    def _push(self, *posts: PostKey) -> Iterator[Emit]:
        """Sends the current state of some posts to all followers on push."""
        if self._meta.passes is not None and self._meta.is_pending:
            last = _pass_entry(self._meta.passes.stop - 1)
            waiting = read_pass(self._table[last])
            if isinstance(waiting, PostPassRow) and not waiting.at:  # not started yet
                items = [*waiting.items, *(post for post in posts if post not in waiting.items)]
                if len(items) <= TOGETHER:
                    self._table[last] = PostPassRow(items)
                    return
        yield from self._begin(PostPassRow([*posts]))

    def _begin(self, walk: PassRow) -> Iterator[Emit]:
        """Starts a pass, or queues it behind the passes before it."""
        if not self._meta.is_pending:
            _, done = yield from self._walked(walk, self._options.pushes)
            if done:
                return
        if self._meta.passes is None:
            self._meta.passes = PassNumbers()
        self._table[_pass_entry(self._meta.passes.stop)] = walk
        self._meta.passes.stop += 1

    def _go_on(self) -> Iterator[Emit]:
        passes, left = self._meta.passes, self._options.pushes
        while passes is not None and left > 0 and self._meta.is_pending:
            name = _pass_entry(passes.first)
            walk = read_pass(self._table[name])
            left, done = yield from self._walked(walk, left)
            if done:
                del self._table[name]
                passes.first += 1
            else:
                self._table[name] = walk

    def _walked(self, walk: PassRow, left: int) -> Generator[Emit, None, tuple[int, bool]]:
        """Continues a pass with up to `left` pushes. Returns the pushes left and whether the pass
        is done."""
        self._meta.sent += 1
        message: Push | SideChange
        if isinstance(walk, PostPassRow):
            message = Push(producer=self._key, since=0, items=self._now(walk.items))
            low, stop = self._meta.need, after(BY)
        else:
            message = self._side_change(walk.side, 0)
            low, stop = walk.low, BY + class_text(walk.high)
        start = walk.at + "\0" if walk.at else BY + class_text(low)
        pushes_each = max(1, len(message.items))
        most, count = max(1, left // pushes_each), 0
        for name, since in self._table.scan(start, stop, limit=most):
            yield self._say(parts(name)[2], replace(message, since=since))
            walk.at, count = name, count + 1
        done = count < most
        if done and isinstance(walk, SidePassRow):
            self._meta.need = walk.low if walk.side == "push" else walk.high
        return left - count * pushes_each, done

    def _now(self, posts: list[PostKey]) -> list[PushedPost]:
        """The posts of a pass as they are now."""
        table = self._table
        return [
            PushedPost(post.at, post.id, table.get(post_entry(post.at, post.id))) for post in posts
        ]

    def _changed(self, message: FollowerMessage, side: Side) -> Emit:
        """Tells a follower that its pair has changed side."""
        self._meta.sent += 1
        return self._say(message.consumer, self._side_change(side, message.since))

    def _side_change(self, side: Side, since: int) -> SideChange:
        """The message about a change of side. If the new side is push, it has the newest posts."""
        items, begin = self._newest() if side == "push" else ([], 0)
        return SideChange(producer=self._key, since=since, side=side, items=items, begin=begin)

    def _say(self, consumer: str, message: Push | SideChange) -> Emit:
        return emit(f"{self._name}.push", key=consumer, value=message, ts=self._meta.sent)

    def _newest(self) -> tuple[list[PushedPost], int]:
        """Returns the newest posts, and the time from which they are complete."""
        most = self._options.backfill
        rows = islice(self._table.scan(POSTS, after(POSTS), reverse=True), most + 1)
        items = [PushedPost(int(parts(name)[1]), parts(name)[2], row) for name, row in rows]
        if len(items) <= most:
            return items, 0
        begin = items[-1].at + 1
        return [item for item in items if item.at >= begin], begin

    def _follower(self, consumer: str) -> FollowerRow | None:
        return read_row(self._table.get(entry("of", consumer)), FollowerRow)

    def _keep(self, message: FollowerMessage) -> None:
        consumer, rate_class, since = message.consumer, message.rate_class, message.since
        self._table[entry("of", consumer)] = FollowerRow(rate_class, since)
        self._table[entry("by", class_text(rate_class), consumer)] = since

    def _drop(self, consumer: str) -> FollowerRow | None:
        """Removes and returns a follower; None if it was not one."""
        follower = self._follower(consumer)
        if follower is not None:
            del self._table[entry("of", consumer)]
            del self._table[entry("by", class_text(follower.rate_class), consumer)]
        return follower


HANDLERS: Mapping[type, Callable[[Producer, Any], Iterator[Emit]]] = {
    **dict.fromkeys(get_args(PostChange), Producer.change_post),
    AggregateRecord: Producer.aggregate,
    Followed: Producer.followed,
    Unfollowed: Producer.unfollowed,
    Rated: Producer.rated,
    SourceJoined: Producer.joined,
    SourceParted: Producer.parted,
    Referred: Producer.referred,
    More: Producer.more,
}


def _pass_entry(number: int) -> str:
    return entry("pass", f"{number:010d}")
