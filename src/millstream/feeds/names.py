"""How the tables of feeds name their entries.

A name is made of parts with `SEP` between them, which no producer, consumer or id contains, so that
entries come in the order of their parts. Times are written with `DIGITS` digits, so that they come
in their order.

Of a producer (`NAME.producers`, Feeding Frenzy's ProducerPivoted and ConnectionNetwork, 4.2):

    by|CLASS|CONSUMER     a follower by how often it looks: pushing is a scan from a class up
    id|ID                 the time of a post, 0 if it was deleted
    into|PRODUCER         an aggregated producer that has this one as a source, and since when
    meta                  rates and counts
    of|CONSUMER           the class of a follower, and since when it follows
    pass|NUMBER           a walk over the followers that is under way
    post|TIME|ID          a post; of an aggregated producer also a `reference` to one of a source
    source|PRODUCER       of an aggregated producer: one of its sources, and since when

Of a consumer (`NAME.consumers`, ConsumerPivoted):

    block|PRODUCER        a producer that is not to be seen
    from|TIME|PRODUCER    a producer on push whose posts are here only from that time on
    item|TIME|PRODUCER|ID a post that was pushed; a reference that was has `OF` and by whom after it
    meta                  rate, how far it has read, how far back items go; read with what follows
    pull|PRODUCER         a producer that is pulled, and since when it is followed
    push|PRODUCER         a producer that is pushed, and since when it is followed
"""

from __future__ import annotations

SEP = "\x1f"
AFTER = "\x20"
"""The first character after `SEP`: ends a range of names that begin alike."""
OF = "\x1e"
"""Divides the two names in a part that says more than one thing: no name has it either, and it is
before `SEP` and all that names have."""
LOWER, HIGHER = "\x01", "\U0010ffff"
"""Begin a reference: before all ids, and after them."""
MARKS = frozenset((LOWER, HIGHER))
DIGITS = 17
META = "meta"
_TIME, _AFTER_TIME = slice(5, 5 + DIGITS), 6 + DIGITS
"""Where in the name of an item its time is, and what comes after it."""

Position = tuple[int, str, str]
"""Where a post stands in every feed: its time, its producer, its id."""


def entry(*parts: str) -> str:
    """The name of an entry.

    >>> entry("pull", "alice") == "pull" + SEP + "alice"
    True
    """
    return SEP.join(parts)


def prefix(*parts: str) -> str:
    """What the names begin with that have these parts and more."""
    return SEP.join(parts) + SEP


def after(begin: str) -> str:
    """The end of the range of names that begin with a prefix."""
    return begin[:-1] + AFTER


def time_text(ts: int) -> str:
    """A time, so that the order of texts is the order of times.

    >>> time_text(42)
    '00000000000000042'
    """
    return f"{ts:0{DIGITS}d}"


def class_text(number: int) -> str:
    """A class of rates, in three digits."""
    return f"{number:03d}"


def post_entry(ts: int, post: str) -> str:
    return f"post{SEP}{ts:0{DIGITS}d}{SEP}{post}"


def item_entry(ts: int, producer: str, post: str) -> str:
    """A post that a producer pushes, or a reference: in the order of positions.

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
    """Who pushed an item.

    >>> pushed_by(item_entry(1, "news", reference("news", "alice", "x")))
    'news'
    """
    _, producer, _, via = item_parts(name)
    return via or producer


def on_way_entry(aggregated: str, ts: int, origin: str, post: str) -> str:
    """A post of a source that an aggregated producer is to be told of."""
    return entry(aggregated, time_text(ts), origin, post)


def reference(aggregated: str, origin: str, post: str) -> str:
    """How an aggregated producer names another's post among its own: where positions have it.

    >>> reference("news", "alice", "x") < "any id" < reference("news", "zoe", "x")
    True
    """
    return f"{LOWER if origin < aggregated else HIGHER}{origin}{OF}{post}"


def referred_to(post: str) -> tuple[str, str]:
    """The producer and the id that a reference is to."""
    origin, _, post = post[1:].partition(OF)
    return origin, post


def is_reference(post: str) -> bool:
    return post[:1] in MARKS


def parts(name: str) -> list[str]:
    """The parts of a name."""
    return name.split(SEP)
