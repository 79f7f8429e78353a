"""Rows and messages of stores that earlier versions wrote: they stay readable, and are still
written the same way."""

from __future__ import annotations

from typing import Any

import pytest
from feeds.feed_runs import KeptTables
from msgspec import convert

import millstream as ms
from millstream.codec import decode_value, encode_value
from millstream.feeds import messages, stored_rows
from millstream.feeds.messages import ConsumerEvent, ProducerEvent, PushedPost, ReferredPost
from millstream.feeds.names import META, entry, item_entry, post_entry
from millstream.feeds.placement import PlacedFeeds
from millstream.feeds.policy.rates import Rate
from millstream.feeds.reads.candidates import item_of, row_of
from millstream.feeds.reads.query import FeedQuery
from millstream.feeds.stored_rows import PostKey, read_pass
from millstream.feeds.updates.consumers import Consumers
from millstream.feeds.updates.producers import Producers
from millstream.model.event import Emit, Event
from millstream.model.slate import NoEntries, Table

AT = 1_700_000_000_000_000
RATE = Rate(1.0, 43_200_000_000, AT, 1.0, 0.0, 0)
RATE_TEXT = b"[1.0,43200000000,1700000000000000,1.0,0.0,0]"
ROWS: list[tuple[Any, bytes]] = [
    (stored_rows.PostRow({"text": "so"}), b'{"v":{"text":"so"}}'),
    (stored_rows.PostRow(None, AT), b'{"e":1700000000000000,"v":null}'),
    (stored_rows.ReferenceRow(AT), b'{"s":1700000000000000}'),
    (stored_rows.FollowerRow(164, AT), b"[164,1700000000000000]"),
    (stored_rows.PushRow(AT, 0), b"[1700000000000000,0]"),
    (
        stored_rows.ProducerMeta(
            1.5, 160, 164, RATE, stored_rows.ProducerCounts(posts=2, followers=1), AT
        ),
        b'{"aim":160,"counts":{"followers":1,"posts":2},"need":164,"rate":'
        + RATE_TEXT
        + b',"ratio":1.5,"sent":1700000000000000}',
    ),
    (
        stored_rows.ProducerMeta(
            1.5,
            160,
            164,
            RATE,
            sent=AT,
            is_watched=True,
            is_source=True,
            sweep="post",
            passes=stored_rows.PassNumbers(3, 5),
            has_more=True,
            under_way=True,
        ),
        b'{"aim":160,"counts":{"followers":0,"posts":0},"more":true,"need":164,"passes":[3,5],'
        b'"rate":' + RATE_TEXT + b',"ratio":1.5,"sent":1700000000000000,"source":true,'
        b'"sweep":"post","under_way":true,"watched":true}',
    ),
    (stored_rows.ConsumerMeta(0, 2, 0, 0), b'{"class":0,"floor":0,"follows":2,"items":0}'),
    (
        stored_rows.ConsumerMeta(164, 2, 7, 9, RATE, True, 0.5, 2.0, (AT, "ann", "1"), 8),
        b'{"class":164,"floor":9,"flow":0.5,"follows":2,"from":8,"items":7,"rate":'
        + RATE_TEXT
        + b',"ratio":2.0,"seen":[1700000000000000,"ann","1"],"wholesale":true}',
    ),
]
PASSES: list[tuple[Any, bytes]] = [
    (stored_rows.PostPassRow([PostKey(AT, "1")]), b'{"items":[[1700000000000000,"1"]]}'),
    (
        stored_rows.PostPassRow([PostKey(AT, "1")], "by"),
        b'{"at":"by","items":[[1700000000000000,"1"]]}',
    ),
    (stored_rows.SidePassRow("push", 0, 164), b'{"high":164,"low":0,"side":"push"}'),
    (stored_rows.SidePassRow("pull", 4, 8, "by"), b'{"at":"by","high":8,"low":4,"side":"pull"}'),
]
TO_PRODUCERS: list[tuple[Any, bytes]] = [
    (
        messages.Followed(consumer="x", since=7, rate_class=164),
        b'{"class":164,"consumer":"x","kind":"followed","since":7}',
    ),
    (
        messages.Unfollowed(consumer="x", since=7, rate_class=0),
        b'{"class":0,"consumer":"x","kind":"unfollowed","since":7}',
    ),
    (
        messages.Rated(consumer="x", since=7, rate_class=1),
        b'{"class":1,"consumer":"x","kind":"rated","since":7}',
    ),
    (messages.SourceJoined(into="news", since=7), b'{"into":"news","kind":"joined","since":7}'),
    (messages.SourceParted(into="news", since=7), b'{"into":"news","kind":"parted","since":7}'),
    (
        messages.Referred(origin="ann", since=7, items=[ReferredPost(8, "1", False)]),
        b'{"items":[[8,"1",false]],"kind":"referred","origin":"ann","since":7}',
    ),
    (
        messages.Referred(origin="ann", since=7, items=[ReferredPost(8, "1", True)], on_way=True),
        b'{"items":[[8,"1",true]],"kind":"referred","on_way":true,"origin":"ann","since":7}',
    ),
    (messages.More(), b'{"kind":"more"}'),
]
TO_CONSUMERS: list[tuple[Any, bytes]] = [
    (
        messages.Push(
            producer="ann",
            since=7,
            items=[PushedPost(8, "1", {"v": 0}), PushedPost(9, "2", None)],
        ),
        b'{"items":[[8,"1",{"v":0}],[9,"2",null]],"kind":"push","producer":"ann","since":7}',
    ),
    (
        messages.SideChange(producer="ann", since=7, side="pull"),
        b'{"kind":"side","producer":"ann","side":"pull","since":7}',
    ),
    (
        messages.SideChange(
            producer="ann", since=7, side="push", items=[PushedPost(8, "1", {"v": 0})], begin=8
        ),
        b'{"from":8,"items":[[8,"1",{"v":0}]],"kind":"side","producer":"ann","side":"push",'
        b'"since":7}',
    ),
]
TO_FAN_OUTS: list[tuple[Any, bytes]] = [
    (messages.UnderWay("ann", True), b'{"producer":"ann","under_way":true}'),
    (messages.TableEntry("ann", None), b'{"entry":"ann","kept":null}'),
]
OPTIONS = ms.feeds.Feeds()


@pytest.mark.parametrize(("row", "stored"), [*ROWS, *PASSES, *TO_FAN_OUTS])
def test_a_row_is_encoded_as_before(row: Any, stored: bytes) -> None:
    """Each kind of row has the bytes that it had when rows were dicts, and is read from them."""
    assert encode_value(row) == stored
    value = decode_value(stored)
    is_pass = isinstance(row, stored_rows.PostPassRow | stored_rows.SidePassRow)
    assert (read_pass(value) if is_pass else convert(value, type(row))) == row


@pytest.mark.parametrize(
    ("message", "stored", "event"),
    [
        *((message, stored, ProducerEvent) for message, stored in TO_PRODUCERS),
        *((message, stored, ConsumerEvent) for message, stored in TO_CONSUMERS),
    ],
)
def test_a_message_is_encoded_as_before(message: Any, stored: bytes, event: Any) -> None:
    """A message that was on its way when the application stopped is read by the next version."""
    assert encode_value(message) == stored
    assert convert(decode_value(stored), event) == message


def test_an_item_has_all_of_a_post() -> None:
    """Every field of a stored post is in its item, and comes back from it."""
    row = stored_rows.PostRow(*range(len(stored_rows.PostRow.__struct_fields__)))
    lost = "item_of or row_of leaves a field of PostRow out"
    assert row_of(item_of(AT, "ann", "1", row, "push")) == row, lost


def test_fields_that_are_no_longer_written_are_read() -> None:
    """Dicts had fields with the values of a new row, which Structs leave out."""
    consumer = b'{"class":0,"floor":0,"follows":0,"items":0,"wholesale":false}'
    meta = convert(decode_value(consumer), stored_rows.ConsumerMeta)
    assert meta == stored_rows.ConsumerMeta.new()
    producer = (
        b'{"aim":0,"counts":{"followers":0,"posts":0},"more":false,"need":0,"passes":[0,0],'
        b'"rate":[1,43200000000,1700000000000000,0,0,0],"ratio":1,"sent":0,"under_way":false}'
    )
    assert not convert(decode_value(producer), stored_rows.ProducerMeta).is_pending
    side = b'{"from":0,"items":[],"kind":"side","producer":"ann","side":"push","since":7}'
    change = messages.SideChange(producer="ann", since=7, side="push")
    assert convert(decode_value(side), ConsumerEvent) == change


def test_a_store_of_dicts_goes_on() -> None:
    """Tables whose entries were written as dicts and lists: a feed of them is read, and the next
    records find the follower and the post."""
    posts = {entry("id", "1"): AT, post_entry(AT, "1"): {"v": "old"}}
    follower = {entry("of", "x"): [164, 5], entry("by", "164", "x"): 5}
    rate = [1.0, 43_200_000_000, AT, 1.0, 0.0, 0]
    counts = {"posts": 1, "followers": 1}
    produced = {"rate": rate, "ratio": 1.0, "aim": 40, "need": 40, "counts": counts, "sent": AT}
    producer = {**posts, **follower, META: produced}
    consumed = {"class": 164, "follows": 1, "items": 1, "floor": 0, "rate": rate}
    item = {item_entry(AT, "ann", "1"): {"v": "old"}}
    consumer = {**item, META: consumed, entry("push", "ann"): [5, 0]}

    placed = PlacedFeeds(OPTIONS, "feeds")
    tables = {placed.producers: {"ann": producer}, placed.consumers: {"x": consumer}}
    (read,) = FeedQuery(placed, KeptTables(tables), "x").older(None, 5).items
    assert (read.value, read.how) == ("old", "push")

    edit = {"kind": "edit", "at": AT + 5, "producer": "ann", "id": "1", "value": "new"}
    emitted, _ = _taken(Producers(OPTIONS, "feeds"), "ann", producer, edit)
    (push,) = [effect for effect in emitted if effect.stream == "feeds.push"]
    assert push.key == "x"
    sent = decode_value(encode_value(push.value))
    _, table = _taken(Consumers(OPTIONS, "feeds"), "x", consumer, sent)
    assert table[item_entry(AT, "ann", "1")] == {"v": "new", "e": AT + 5}


def _taken(
    function: Producers | Consumers, key: str, stored: dict[str, Any], value: Any
) -> tuple[list[Emit], Table]:
    table = Table(NoEntries(), encode_value, decode_value)
    for name, row in stored.items():
        table[name] = row
    effects = list(function(Event("", AT + 9, key, value), table))
    return [effect for effect in effects if isinstance(effect, Emit)], table
