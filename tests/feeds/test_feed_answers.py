"""Answers of feeds: pages that can be followed in both directions, and what they say."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from feeds.feed_runs import FeedRun, Record, brute_force
from feeds.feed_strategies import OPTIONS, PRODUCERS, records
from generated_cases import examples
from hypothesis import given, settings
from hypothesis import strategies as st

import millstream as ms
from millstream.errors import InputError
from millstream.feeds.options import FeedOptions
from millstream.feeds.reads.answers import Request, answer
from millstream.feeds.reads.cursor import Cursor
from millstream.feeds.reads.pending_records import Pending
from millstream.feeds.reads.query import FeedQuery
from millstream.messages.feeds import FeedPart

START = 1_700_000_000_000_000
SECOND = 1_000_000
LATER = START + 3_600 * SECOND
Answer = dict[str, Any]
Place = tuple[int, str, str]


def ask(run: FeedRun, pending: Sequence[Record] = (), **given: Any) -> Answer:
    """The answer to consumer x, as a client gets it."""
    asked = Request.read({name: str(value) for name, value in given.items()}, run.options)
    return received(answer(run.query("x", pending), asked, LATER))


def received(part: FeedPart) -> Answer:
    return json.loads(msgspec.json.encode(part))  # type: ignore[no-any-return]


def places(found: Answer) -> list[Place]:
    return [(item["ts"], item["producer"], item["id"]) for item in found["items"]]


def ids(found: Answer) -> list[str]:
    return [item["id"] for item in found["items"]]


def follow(*producers: str) -> list[Record]:
    return [{"kind": "follow", "at": START, "consumer": "x", "producer": one} for one in producers]


def post(n: int, producer: str = "ann") -> Record:
    at = START + n * SECOND
    return {"kind": "post", "at": at, "producer": producer, "id": f"i{n}", "value": {"n": n}}


def with_posts(count: int, **options: Any) -> FeedRun:
    """x follows ann, who has posted."""
    run = FeedRun(ms.feeds.Feeds(**options))
    run.batch([*follow("ann"), *(post(n) for n in range(1, count + 1))])
    return run


def test_an_answer_has_all_that_was_agreed() -> None:
    """Every field of the contract but those that the server adds, in an answer with all of them."""
    run = with_posts(2)
    mark = {"kind": "seen", "at": LATER, "consumer": "x", "upto": [START + SECOND, "ann", "i1"]}
    edit = {"kind": "edit", "at": LATER, "producer": "ann", "id": "i1", "value": "new"}
    found = ask(run, [mark, edit], limit=5, unread=1, why=1)
    why = found["items"][0].pop("why")
    assert found["items"][1].pop("why") == why
    common = {"producer": "ann", "via": None, "how": "pull"}
    first = {"id": "i2", "ts": START + 2 * SECOND, "value": {"n": 2}, "edited": None}
    second = {"id": "i1", "ts": START + SECOND, "value": "new", "edited": LATER}
    assert found == {
        "feeds": "feeds",
        "consumer": "x",
        "coherency": "global",
        "items": [first | common | {"unread": True}, second | common | {"unread": False}],
        "next": None,
        "previous": Cursor("newer", (START + 2 * SECOND, "ann", "i2")).text(),
        "unread": {"count": 1, "more": False},
        "seen": [START + SECOND, "ann", "i1"],
        "complete": True,
        "left_out": None,
    }
    assert set(why) == {"side", "query_rate", "event_rate", "ratio"}


def test_what_was_not_asked_for_is_not_there() -> None:
    """No `why` and no count unless they are asked for; no flag unless something was read."""
    found = ask(with_posts(1))
    assert "why" not in found["items"][0]
    assert (found["items"][0]["unread"], found["unread"], found["seen"]) == (None, None, None)


def test_an_empty_feed() -> None:
    """Has no items and no cursors, and is complete."""
    for coherency in ("global", "per-producer"):
        found = ask(FeedRun(), coherency=coherency, unread=1, why=1)
        assert (found["items"], found["next"], found["previous"]) == ([], None, None)
        assert (found["complete"], found["unread"]) == (True, {"count": 0, "more": False})


def test_why_gives_the_side_and_both_rates() -> None:
    """A consumer that looks far more often than the producer posts has the pair on push, and the
    answer says so."""
    run = FeedRun(ms.feeds.Feeds(ratio=2.0))
    run.batch([*follow("ann"), post(1)])
    before = ask(run, why=1)["items"][0]
    assert (before["how"], before["why"]["side"]) == ("pull", "pull")
    assert before["why"]["query_rate"] == 0.0 < before["why"]["event_rate"]
    run.batch([{"kind": "view", "at": START + 2 * SECOND, "consumer": "x", "count": 10_000}])
    run.settle()
    found = ask(run, [post(3)], why=1)["items"]
    assert [(one["how"], one["why"]["side"]) for one in found] == [
        ("pending", "push"),
        ("push", "push"),
    ]
    why = found[0]["why"]
    assert why["query_rate"] > why["ratio"] * why["event_rate"]
    assert why["ratio"] == 2.0


def test_what_was_left_out_is_said() -> None:
    """With more producers on pull than one read asks, the answer is not complete."""
    run = FeedRun()
    run.batch([*follow("ann", "bob", "cid"), post(1), post(2, "bob"), post(3, "cid")])
    query = FeedQuery(run.placed, run.tables(), "x", Pending(), most_pulled=2)
    for coherency in ("global", "per-producer"):
        request = Request.read({"coherency": coherency}, run.options)
        found = received(answer(query, request, LATER))
        assert (len(found["items"]), found["complete"]) == (2, False)
        assert found["left_out"]["producers"] == 1
        assert "not shown" in found["left_out"]["reason"]


def test_older_posts_than_k_are_not_left_out() -> None:
    """With per-producer coherency they were not asked for: the answer is complete, and ends."""
    found = ask(with_posts(9), coherency="per-producer", k=2)
    assert (ids(found), found["complete"], found["next"]) == (["i9", "i8"], True, None)


@pytest.mark.parametrize("coherency", ["global", "per-producer"])
def test_polling(coherency: str) -> None:
    """By `previous` a client gets each new post once; with nothing new it may ask again."""
    run = with_posts(3, coherency=coherency)
    found = ask(run, limit=2)
    assert ids(found) == ["i3", "i2"]
    for _ in range(2):
        found = ask(run, limit=2, cursor=found["previous"])
        assert found["items"] == []
    run.batch([post(4), post(5), post(6)])
    new = list[str]()
    for pending in ([], [post(7)], [post(7)], [post(7)]):
        found = ask(run, pending, limit=2, cursor=found["previous"])
        new = ids(found) + new
    assert new == ["i7", "i6", "i5", "i4"]


@pytest.mark.parametrize("coherency", ["global", "per-producer"])
def test_from_an_empty_page_the_way_back_is_there(coherency: str) -> None:
    """Neither direction skips the post at which an empty page's cursor stands."""
    run = with_posts(3, coherency=coherency, k=5)
    first = ask(run, limit=2)
    newer = ask(run, limit=2, cursor=first["previous"])
    assert newer["items"] == []
    assert ids(ask(run, limit=2, cursor=newer["next"])) == ["i3", "i2"]
    gone = {"kind": "delete", "at": LATER, "producer": "ann", "id": "i1"}
    end = ask(run, [gone], limit=2, cursor=first["next"])
    assert (end["items"], end["next"]) == ([], None)
    assert ids(ask(run, [gone], limit=2, cursor=end["previous"])) == ["i3", "i2"]


def test_back_from_new_posts_with_per_producer_coherency() -> None:
    """`next` of a poll leads to the same pages as before, and those lead to each other."""
    run = with_posts(4, coherency="per-producer", k=4)
    first = ask(run, limit=2)
    run.batch([post(5)])
    new = ask(run, limit=2, cursor=first["previous"])
    assert ids(new) == ["i5"]
    again = ask(run, limit=2, cursor=new["next"])
    assert again["items"] == first["items"]
    last = ask(run, limit=2, cursor=again["next"])
    assert (ids(last), last["next"]) == (["i2", "i1"], None)
    assert ask(run, limit=2, cursor=last["previous"])["items"] == first["items"]


@settings(max_examples=examples(60), deadline=None)
@given(data=st.data(), options=OPTIONS, given=records(most=50))
def test_pages_while_others_post(
    data: st.DataObject, options: ms.feeds.Feeds, given: list[Record]
) -> None:
    """From the newest to the oldest and back, with records of all kinds taken in or pending between
    the pages: no post comes twice on the way, and none is missing that was there all along."""
    run = FeedRun(options)
    run.batch(follow(*PRODUCERS))
    run.settle()
    left = [one | {"consumer": "x"} if "consumer" in one else one for one in given]
    limit = data.draw(st.integers(1, 4))
    run.batch(left[: len(left) // 2])
    left = left[len(left) // 2 :]

    def turn(cursor: str | None) -> tuple[Answer, set[Place]]:
        """A page, after some records; and all posts that are there."""
        nonlocal left
        taken = data.draw(st.integers(0, min(3, len(left))))
        run.batch(left[:taken])
        left = left[taken:]
        pending = left[: data.draw(st.integers(0, len(left)))]
        known = {} if cursor is None else {"cursor": cursor}
        found = ask(run, pending, limit=limit, coherency="global", **known)
        there = brute_force(run.taken + pending, "x")
        return found, {one[:3] for one in there}

    found, always = turn(None)
    down = places(found)
    while found["next"] is not None:
        found, there = turn(found["next"])
        always &= there
        down += places(found)
    assert down == sorted(set(down), reverse=True)
    assert always <= set(down)
    up, always = places(found), always | set(places(found))
    for _ in range(100):
        if found["previous"] is None:
            break
        found, there = turn(found["previous"])
        always &= there
        up = places(found) + up
        if not (found["items"] or left):
            break
    assert up == sorted(set(up), reverse=True)
    assert always <= set(up)


@settings(max_examples=examples(60), deadline=None)
@given(data=st.data(), options=OPTIONS, given=records(most=50))
def test_diverse_pages_while_others_post(
    data: st.DataObject, options: ms.feeds.Feeds, given: list[Record]
) -> None:
    """With per-producer coherency all pages have the items of the time of the first one, each post
    once, for any posts, edits, follows or changes to push in between. Going back gives the same
    pages."""
    run = FeedRun(options)
    run.batch(follow(*PRODUCERS))
    run.settle()
    kept = [one for one in given if one["kind"] not in ("delete", "unfollow", "block")]
    left = [one | {"at": START + n * SECOND, "consumer": "x"} for n, one in enumerate(kept)]
    half, limit = len(left) // 2, data.draw(st.integers(1, 4))
    run.batch(left[:half])
    left = left[half:]
    asked: dict[str, Any] = {"limit": limit, "coherency": "per-producer", "k": 3, "t": "10s"}
    ranks: Counter[str] = Counter()
    there = set[Place]()
    for ts, producer, post, _ in brute_force(run.taken, "x"):
        ranks[producer] += 1
        there |= {(ts, producer, post)} if ranks[producer] <= 3 else set()
    pages = [ask(run, **asked)]
    while pages[-1]["next"] is not None:
        taken = data.draw(st.integers(0, min(3, len(left))))
        run.batch(left[:taken])
        left = left[taken:]
        pending = left[: data.draw(st.integers(0, len(left)))]
        pages.append(ask(run, pending, **asked, cursor=pages[-1]["next"]))
    met = [place for page in pages for place in places(page)]
    assert (len(met), set(met)) == (len(there), there)
    run.batch(left)
    for before, page in zip(pages[-2::-1], pages[:0:-1], strict=True):
        assert places(ask(run, cursor=page["previous"], limit=limit)) == places(before)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"limit": "0"}, "limit must be a whole number from 1 to 500; got '0'"),
        ({"limit": "501"}, "limit must be a whole number from 1 to 500; got '501'"),
        ({"limit": "ten"}, "limit must be a whole number"),
        ({"limit": "٣"}, "limit must be a whole number"),
        ({"limit": "9" * 5_000}, "limit must be a whole number"),
        ({"k": "101"}, "k must be a whole number from 1 to 100; got '101'"),
        ({"t": "7"}, "t must be a duration such as '7d'"),
        ({"t": "0s"}, "and not 0; got '0s'"),
        ({"t": "9" * 400 + "w"}, "t must be a duration such as '7d'"),
        ({"coherency": "globl"}, "did you mean 'global'?"),
        ({"why": "yes"}, "why must be 1 or 0; got 'yes'"),
        ({"unread": ""}, "unread must be 1 or 0; got ''"),
        ({"cursor": "x"}, "ask without a cursor"),
        ({"limt": "3"}, "there is no parameter 'limt'; did you mean 'limit'?"),
    ],
)
def test_a_wrong_parameter_is_refused(given: dict[str, str], says: str) -> None:
    """The message says what is expected and what was given."""
    with pytest.raises(InputError) as caught:
        Request.read(given, FeedOptions())
    assert says in str(caught.value)


def test_a_cursor_goes_on_as_it_began() -> None:
    """Coherency, k and t may be repeated with a cursor, in any spelling, but not changed."""
    run = with_posts(5)
    cursor = ask(run, coherency="per-producer", k=4, t="90m", limit=2)["next"]
    same = ask(run, cursor=cursor, limit=2)
    assert (ids(same), same["coherency"]) == (["i3", "i2"], "per-producer")
    assert ask(run, cursor=cursor, limit=2, k=4, t="1h30m", coherency="per-producer") == same
    for other, says in (
        ({"coherency": "global"}, "coherency must be the cursor's, 'per-producer'"),
        ({"k": 5}, "k must be the cursor's, 4, or be left out; got '5'"),
        ({"t": "7d"}, "t must be the cursor's, 1h30m, or be left out; got '7d'"),
    ):
        with pytest.raises(InputError, match="ask without a cursor to change it") as caught:
            ask(run, cursor=cursor, **other)
        assert says in str(caught.value)
    cursor = ask(run, limit=2)["next"]
    with pytest.raises(InputError, match="coherency must be the cursor's, 'global'"):
        ask(run, cursor=cursor, coherency="per-producer")


def test_what_was_a_lead_stays_one() -> None:
    """A page that is asked for much later goes on as the first one was, with nothing repeated."""
    run = FeedRun(ms.feeds.Feeds(coherency="per-producer", t="10s"))
    run.batch([*follow("ann", "bob"), post(1), post(2, "bob"), post(3, "bob")])
    found, met = {"next": None}, list[str]()
    for seconds in (4, 100, 200):
        given = {"limit": "1"} | ({"cursor": found["next"]} if found["next"] else {})
        asked = Request.read(given, run.options)
        found = received(answer(run.query("x"), asked, START + seconds * SECOND))
        met += ids(found)
    assert (met, found["next"]) == (["i3", "i1", "i2"], None)


def test_no_cursor_asks_for_more_than_a_request_may() -> None:
    """A forged cursor does not make the server read all of every producer."""
    cursor = Cursor.read(ask(with_posts(3), coherency="per-producer", limit=1)["next"])
    assert cursor.diverse is not None
    text = replace(cursor, diverse=replace(cursor.diverse, k=10**6)).text()
    with pytest.raises(InputError, match="k must be at most 100"):
        Request.read({"cursor": text}, FeedOptions())


def test_options_may_be_above_what_requests_may() -> None:
    """The operator may allow longer pages by the application's defaults."""
    asked = Request.read({}, FeedOptions(limit=900, k=300))
    assert (asked.limit, asked.k) == (900, 300)
    assert Request.read({"limit": "900", "k": "300"}, FeedOptions(limit=900, k=300)) == asked
