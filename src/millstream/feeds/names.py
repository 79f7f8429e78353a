"""The names of entries in the tables of feeds.

A name consists of parts with `SEP` between them. No producer, consumer or id contains `SEP`, so
entries sort by their parts. Times are written with `DIGITS` digits, so they sort as numbers.

Of a producer (`NAME.producers`, Feeding Frenzy's ProducerPivoted and ConnectionNetwork, 4.2):

    by|CLASS|CONSUMER     a follower by its rate class: pushing is a scan from a class upwards
    id|ID                 the time of a post, 0 if it was deleted
    into|PRODUCER         an aggregated producer with this one as a source, and since when
    meta                  rates and counts
    of|CONSUMER           the class of a follower, and since when it follows
    pass|NUMBER           a pass over the followers that is under way
    post|TIME|ID          a post; of an aggregated producer also a `reference` to one of a source
    source|PRODUCER       of an aggregated producer: one of its sources, and since when

Of a consumer (`NAME.consumers`, ConsumerPivoted):

    block|PRODUCER        a blocked producer, whose posts are not shown
    from|TIME|PRODUCER    a producer on push whose posts are here only from that time on
    item|TIME|PRODUCER|ID a pushed post; a pushed reference ends with `OF` and who pushed it
    meta                  rate, how far it has read, how far back items go; read with `pull`
    pull|PRODUCER         a producer on pull, and since when it is followed
    push|PRODUCER         a producer on push, since when it is followed, and its `from` time
"""

from __future__ import annotations

SEP = "\x1f"
AFTER = "\x20"
"""The first character after `SEP`; ends a range of names with a common prefix."""
OF = "\x1e"
"""Separates two names within one part. No name contains it, and it sorts before `SEP` and all
characters of names."""
LOWER, HIGHER = "\x01", "\U0010ffff"
"""The first character of a reference: sorts before all ids, or after them."""
MARKS = frozenset((LOWER, HIGHER))
DIGITS = 17
META = "meta"
_TIME, _AFTER_TIME = slice(5, 5 + DIGITS), 6 + DIGITS
"""The slice of an item's name that holds its time, and the index of what follows."""

Position = tuple[int, str, str]
"""The position of a post in every feed: its time, its producer, its id."""


def entry(*parts: str) -> str:
    """The name of an entry.

    >>> entry("pull", "alice") == "pull" + SEP + "alice"
    True
    """
    return SEP.join(parts)


def prefix(*parts: str) -> str:
    """The common prefix of the names that start with these parts and have more."""
    return SEP.join(parts) + SEP


def after(begin: str) -> str:
    """The end of the range of names with a prefix."""
    return begin[:-1] + AFTER


def time_text(ts: int) -> str:
    """A time as text that sorts as the time does.

    >>> time_text(42)
    '00000000000000042'
    """
    return f"{ts:0{DIGITS}d}"


def class_text(number: int) -> str:
    """A rate class, in three digits."""
    return f"{number:03d}"


def post_entry(ts: int, post: str) -> str:
    return f"post{SEP}{ts:0{DIGITS}d}{SEP}{post}"


def item_entry(ts: int, producer: str, post: str) -> str:
    """The name of an item, a pushed post or reference. Names sort by position.

    >>> parts(item_entry(1, "news", reference("news", "alice", "x")))[2:]
    ['alice', 'x\\x1enews']
    """
    if is_reference(post):
        origin, post = referred_to(post)
        return f"item{SEP}{ts:0{DIGITS}d}{SEP}{origin}{SEP}{post}{OF}{producer}"
    return f"item{SEP}{ts:0{DIGITS}d}{SEP}{producer}{SEP}{post}"


def item_parts(name: str) -> tuple[int, str, str, str | None]:
    """The time of an item, its producer, its id, and the aggregated producer that pushed it.

    >>> item_parts(item_entry(1, "alice", "x"))
    (1, 'alice', 'x', None)
    """
    producer, _, post = name[_AFTER_TIME:].partition(SEP)
    ts = int(name[_TIME])
    if OF in post:
        post, _, via = post.partition(OF)
        return ts, producer, post, via
    return ts, producer, post, None


def pushed_by(name: str) -> str:
    """The producer that pushed an item.

    >>> pushed_by(item_entry(1, "news", reference("news", "alice", "x")))
    'news'
    """
    _, producer, _, via = item_parts(name)
    return via or producer


def on_way_entry(aggregated: str, ts: int, origin: str, post: str) -> str:
    """The name of a source's post that an aggregated producer has not been told of yet."""
    return entry(aggregated, time_text(ts), origin, post)


def reference(aggregated: str, origin: str, post: str) -> str:
    """The id of another's post among those of an aggregated producer. It sorts as positions do.

    >>> reference("news", "alice", "x") < "any id" < reference("news", "zoe", "x")
    True
    """
    return f"{LOWER if origin < aggregated else HIGHER}{origin}{OF}{post}"


def referred_to(post: str) -> tuple[str, str]:
    """The producer and the id of the post that a reference points to."""
    origin, _, post = post[1:].partition(OF)
    return origin, post


def is_reference(post: str) -> bool:
    return post[:1] in MARKS


def parts(name: str) -> list[str]:
    """The parts of a name."""
    return name.split(SEP)
