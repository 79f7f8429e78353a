"""The answer to a feed request: a page of items, cursors, and the number of producers left out.

    asked = Request.read({"limit": "20", "cursor": ...}, options)
    answer(FeedQuery(placed, tables, consumer, pending), asked, now)

Pure: everything is read through the query. The server makes a `FeedPage` of the answer, with the
batch and its age.

`next` leads to older items, and is null at the end. `previous` leads to newer items, and is null
only for a feed without items: a client polls with it, and gets each new post once. Posts, deletes
and restarts in between do not invalidate them. With per-producer coherency they lead through
the pages as of the time of the first page (see `diversity`); the `previous` of the first page leads
to everything that came after it. On the way to newer items `next` is always given: it may lead to
an empty page if all older items have been deleted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal, get_args

import msgspec
from msgspec import Meta

from millstream.errors import CursorConflict, InputError
from millstream.feeds.names import META, Position, entry
from millstream.feeds.options import COHERENCIES, FeedOptions
from millstream.feeds.policy.sides import ratio_of_consumer
from millstream.feeds.reads.cursor import Cursor, Direction, Diverse, from_and_including
from millstream.feeds.reads.diversity import DiverseQuery
from millstream.feeds.reads.query import FeedQuery
from millstream.feeds.records import LATEST
from millstream.feeds.stored_rows import ProducerMeta, read_row
from millstream.messages.feeds import FeedPart, Item, LeftOut, PairReason, Unread
from millstream.model.duration import microseconds, shown_duration
from millstream.nearest import did_you_mean

MOST_LIMIT, MOST_K = 500, 100
KNOWN = ("limit", "cursor", "coherency", "k", "t", "why", "unread", "feeds")
TOO_MANY = (
    "more producers are on pull than one read pulls from; the posts of the others are not shown: "
    "unfollow some, or view the feed more often, so that they are pushed"
)
Flag = Literal["1", "true", "0", "false"]
Age = Annotated[
    str,
    Meta(
        pattern=r"^([1-9][0-9]{0,8}(\.[0-9]{1,6})?|0\.[0-9]{0,5}[1-9])(us|ms|s|m|h|d|w)"
        r"([0-9]{1,9}(\.[0-9]{1,6})?(us|ms|s|m|h|d|w)){0,6}$(?!\n)"
    ),
]
"""A duration that is not 0."""
MOST_UNREAD = 1_000
"""The maximum count of unread items."""


@dataclass(frozen=True, slots=True)
class Request:
    """A checked request, made by `read`."""

    limit: int
    coherency: str
    k: int
    t: int
    """In microseconds. `t` and `k` apply to per-producer coherency only."""
    cursor: Cursor | None = None
    why: bool = False
    unread: bool = False

    @classmethod
    def read(cls, given: Mapping[str, str], options: FeedOptions) -> Request:
        """Parses query parameters. Defaults come from the cursor, or else from the options. Raises
        InputError."""
        for name in given:
            if name not in KNOWN:
                raise InputError(f"there is no parameter {name!r}; {did_you_mean(name, KNOWN)}")
        most_k = max(MOST_K, options.k)
        request = cls(
            limit=_whole(given, "limit", options.limit, max(MOST_LIMIT, options.limit)),
            coherency=read_coherency(given, options.coherency),
            k=_whole(given, "k", options.k, most_k),
            t=_duration(given.get("t"), options.t_us),
            why=read_flag(given, "why"),
            unread=read_flag(given, "unread"),
        )
        cursor = given.get("cursor")
        return request if cursor is None else _going_on(request, Cursor.read(cursor), given, most_k)


def answer(query: FeedQuery, asked: Request, now: int) -> FeedPart:
    """Returns the requested part of the feed. `now` is in microseconds."""
    page = _diverse_page(query, asked, now) if _is_diverse(asked) else _global_page(query, asked)
    left_out = query.left_out
    return FeedPart(
        feeds=query.placed.name,
        consumer=query.consumer,
        coherency=asked.coherency,
        items=shown(query, page.items, why=asked.why),
        next=None if page.next is None else page.next.text(),
        previous=None if page.previous is None else page.previous.text(),
        unread=unread(query) if asked.unread else None,
        seen=query.seen(),
        complete=not left_out,
        left_out=LeftOut(left_out, TOO_MANY) if left_out else None,
    )


def shown(query: FeedQuery, items: Sequence[Item], *, why: bool = False) -> tuple[Item, ...]:
    """Adds to items whether they are unread and, if requested, why their pairs are on their
    sides."""
    seen = query.seen()
    reasons = {
        producer: _reason(query, producer)
        for producer in {_followed(item) for item in items}
        if why
    }
    if seen is None and not why:
        return tuple(items)
    return tuple(
        msgspec.structs.replace(
            item, unread=is_unread(item, seen), why=reasons.get(_followed(item))
        )
        for item in items
    )


def read_flag(given: Mapping[str, str], name: str) -> bool:
    """Reads a parameter that is 1 or 0. Raises InputError."""
    text = given.get(name, "0")
    if text not in get_args(Flag):
        raise InputError(f"{name} must be 1 or 0; got {text!r}")
    return text in ("1", "true")


def read_coherency(given: Mapping[str, str], default: str) -> str:
    """Reads the coherency of a request. Raises InputError."""
    text = given.get("coherency", default)
    if text not in COHERENCIES:
        hint = did_you_mean(text, COHERENCIES)
        raise InputError(f"coherency must be one of {', '.join(COHERENCIES)}; got {text!r}; {hint}")
    return text


@dataclass(frozen=True, slots=True)
class _Page:
    items: list[Item]
    next: Cursor | None
    previous: Cursor | None


def _global_page(query: FeedQuery, asked: Request) -> _Page:
    cursor = asked.cursor
    if cursor is not None and cursor.direction == "newer":
        items = query.newer(cursor.position, asked.limit).items
        more = True  # at least the cursor's own post, unless it was deleted
    else:
        page = query.older(cursor.position if cursor else None, asked.limit)
        items, more = page.items, page.more
    if items:
        oldest = Cursor("older", items[-1].position) if more else None
        return _Page(items, oldest, Cursor("newer", items[0].position))
    return _empty(cursor)


def _diverse_page(query: FeedQuery, asked: Request, now: int) -> _Page:
    cursor, k, t = asked.cursor, asked.k, asked.t
    started = cursor.diverse if cursor else None
    start_time = started.now if started else now
    diverse = DiverseQuery(
        query, k=k, t=t, now=start_time, as_of=started.as_of if started else None
    )
    if cursor is not None and cursor.direction == "newer":
        page = diverse.newer(cursor.key, asked.limit)
        if not page.items:
            return _later_page(query, asked, cursor, now)
        more = True
    else:
        page = diverse.older(cursor.key if cursor else None, asked.limit)
        more = page.more
    if page.first is None or page.last is None:
        return _empty(cursor)

    def at(direction: Direction, key: tuple[bool, Position]) -> Cursor:
        lead, position = key
        return Cursor(direction, position, Diverse(diverse.as_of, start_time, k, t, lead))

    older = at("older", page.last) if more else None
    return _Page(page.items, older, at("newer", page.first))


def _later_page(query: FeedQuery, asked: Request, cursor: Cursor, now: int) -> _Page:
    """With per-producer coherency: all items that came after the first page."""
    items = query.newer(cursor.position, asked.limit).items
    empty = _empty(cursor)
    if not items:
        return empty
    ts = items[0].ts
    begun = Diverse(as_of=ts, now=now, k=asked.k, t=asked.t, lead=ts >= now - asked.t)
    return _Page(items, empty.next, Cursor("newer", items[0].position, begun))


def _empty(cursor: Cursor | None) -> _Page:
    """The page without items: with a cursor back, and a cursor on if newer items may come."""
    if cursor is None:
        return _Page([], None, None)
    if cursor.direction == "newer":
        position = from_and_including(cursor.position, "older")
        return _Page([], replace(cursor, direction="older", position=position), cursor)
    position = from_and_including(cursor.position, "newer")
    return _Page([], None, replace(cursor, direction="newer", position=position))


def _reason(query: FeedQuery, producer: str) -> PairReason:
    """Explains why a followed producer is on push or pull: by Lemma 1 of Feeding Frenzy, or, if a
    consumer decides for all of its producers, by Lemma 2 with the posts of all of them."""
    options, own = query.placed.options, query.meta
    memory = options.memory_us
    stored = query.tables.get(query.placed.producers, producer, META)
    meta = read_row(stored, ProducerMeta)
    pair = query.tables.get(query.placed.consumers, query.consumer, entry("push", producer))
    if options.decides_together:
        event_rate = own.flow or 0.0
        measured = options.ratio if own.ratio is None else own.ratio
        ratio = ratio_of_consumer(measured, own.follows)
    else:
        event_rate = 0.0 if meta is None else meta.rate.per_second(memory)
        ratio = options.ratio if meta is None else meta.ratio
    return PairReason(
        side="pull" if pair is None else "push",
        query_rate=0.0 if own.rate is None else own.rate.per_second(memory),
        event_rate=event_rate,
        ratio=ratio,
    )


def _followed(item: Item) -> str:
    """The followed producer that brings this item into the feed."""
    return item.via or item.producer


def _is_diverse(asked: Request) -> bool:
    return asked.coherency == "per-producer"


def _going_on(asked: Request, cursor: Cursor, given: Mapping[str, str], most_k: int) -> Request:
    """Applies the cursor to the request. Other parameters must agree with it."""
    diverse = cursor.diverse
    if given.get("coherency", cursor.coherency) != cursor.coherency:
        raise CursorConflict(
            f"coherency must be the cursor's, {cursor.coherency!r}, or be left out; got "
            f"{asked.coherency!r}; ask without a cursor to change it"
        )
    asked = replace(asked, cursor=cursor, coherency=cursor.coherency)
    if diverse is None:
        return asked
    if diverse.k > most_k:
        raise CursorConflict(
            f"cursor: k must be at most {most_k}; got {diverse.k}; ask without a cursor"
        )
    for name, got, known in (
        ("k", asked.k, str(diverse.k)),
        ("t", asked.t, shown_duration(diverse.t)),
    ):
        if name in given and got != getattr(diverse, name):
            raise CursorConflict(
                f"{name} must be the cursor's, {known}, or be left out; got {given[name]!r}; ask "
                "without a cursor to change it"
            )
    return replace(asked, k=diverse.k, t=diverse.t)


def _whole(given: Mapping[str, str], name: str, default: int, most: int) -> int:
    text = given.get(name)
    if text is None:
        return default
    if text.isascii() and text.isdigit() and len(text) < 10 and 1 <= int(text) <= most:
        return int(text)
    raise InputError(f"{name} must be a whole number from 1 to {most}; got {text!r}")


def _duration(text: str | None, default: int) -> int:
    if text is None:
        return default
    try:
        duration = microseconds(msgspec.convert(text, Age), "t")
    except msgspec.ValidationError as error:
        raise InputError(
            f"t must be a duration such as '7d' or '1h30m', and not 0; got {text!r}"
        ) from error
    return min(max(1, duration), LATEST - 1)


def unread(query: FeedQuery, most: int = MOST_UNREAD) -> Unread:
    """Counts the items newer than the post up to which the consumer has read, up to `most`.

    A consumer reports that post with a record of kind `seen`, which only ever moves forward. For a
    consumer that has never reported one, all items are counted, and none is marked as read or
    unread. With either coherency, the count covers the items that global coherency shows: if only
    some posts of a producer are shown, all of its unread posts count.
    """
    seen = query.seen()
    # Without a marker, any `most` items would do; the newest ones are cheap, since they are pushed.
    page = query.older(None, most) if seen is None else query.newer(seen, most)
    return Unread(len(page.items), page.more)


def is_unread(item: Item, seen: Position | None) -> bool | None:
    """True if an item is unread; None if the consumer never reported how far it has read."""
    return None if seen is None else item.position > seen
