"""Feeds over HTTP: following, posting, reading pages; what is acknowledged is seen at once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from checkins import NDJSON, stored
from feeds.stored_feeds import FeedStore
from served import asked
from test_server_openapi import misfits

from millstream.feeds.reads.cursor import Cursor
from millstream.server.openapi.openapi_document import document

LATER = 10**15
OLDER = Cursor("older", (LATER, "bob", "1")).text()


@pytest.fixture
def made(tmp_path: Path) -> FeedStore:
    return FeedStore(tmp_path / "store")


@pytest.fixture
def client(made: FeedStore) -> Iterator[httpx.Client]:
    with asked(made.path) as client:
        yield client


def tell(client: httpx.Client, *records: dict[str, Any], **headers: str) -> dict[str, Any]:
    """The answer to records that are all taken."""
    body = "\n".join(map(json.dumps, records))
    answer = client.post("/feeds/events", content=body, headers={**NDJSON, **headers})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    assert found["refused_count"] == 0, found
    return found


def said(producer: str, **fields: Any) -> dict[str, Any]:
    return {"kind": "post", "producer": producer, "value": "hello", **fields}


def page(client: httpx.Client, consumer: str = "ann", **params: Any) -> dict[str, Any]:
    answer = client.get(f"/feeds/{quote(consumer, safe='')}", params=params)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def ids(client: httpx.Client, consumer: str = "ann", **params: Any) -> list[str]:
    return [one["id"] for one in page(client, consumer, **params)["items"]]


def follow(client: httpx.Client, consumer: str, producer: str) -> None:
    answer = client.put(f"/feeds/{consumer}/follows/{producer}")
    assert answer.json() == {"consumer": consumer, "producer": producer, "follows": True}


def test_what_is_acknowledged_is_seen_by_the_next_read(made: FeedStore, client: httpx.Client):
    """Before a batch takes it, after it, and however the two come: follow, post, edit, delete,
    unfollow."""
    follow(client, "ann", "bob")
    tell(client, said("bob", id="1"), said("bob", id="2"), said("eve", id="3"))
    assert ids(client) == ["2", "1"]
    assert {one["how"] for one in page(client)["items"]} == {"pending"}
    batch = made.batch()
    found = page(client)
    assert (found["batch"], found["complete"], found["left_out"]) == (batch, True, None)
    assert [one["how"] for one in found["items"]] == ["pull", "pull"]
    tell(client, {"kind": "delete", "producer": "bob", "id": "1"})
    tell(client, {"kind": "edit", "producer": "bob", "id": "2", "value": "changed"})
    [one] = page(client)["items"]
    assert (one["id"], one["value"], one["edited"] > one["ts"]) == ("2", "changed", True)
    made.batch()
    made.settle()
    [same] = page(client)["items"]
    assert (same["value"], same["edited"]) == (one["value"], one["edited"])
    answer = client.delete("/feeds/ann/follows/bob")
    assert answer.json() == {"consumer": "ann", "producer": "bob", "follows": False}
    assert ids(client) == []
    made.batch()
    assert ids(client) == []


def test_pages_lead_to_one_another(made: FeedStore, client: httpx.Client):
    """Older ones to the first post, back again, and on to what was posted meanwhile."""
    follow(client, "ann", "bob")
    tell(client, *(said("bob", id=f"{number}") for number in range(7)))
    made.batch(most_bytes=1)
    first = page(client, limit=3)
    second = page(client, limit=3, cursor=first["next"])
    third = page(client, limit=3, cursor=second["next"])
    shown = [[one["id"] for one in each["items"]] for each in (first, second, third)]
    assert shown == [["6", "5", "4"], ["3", "2", "1"], ["0"]]
    assert third["next"] is None
    made.batch()
    assert ids(client, limit=3, cursor=second["previous"]) == ["6", "5", "4"]
    assert ids(client, cursor=first["previous"]) == []
    tell(client, said("bob", id="7"))
    assert ids(client, cursor=first["previous"]) == ["7"]


def test_times_rise_and_ids_are_made(made: FeedStore, client: httpx.Client):
    """Times rise in the order of the log, whatever the clock does. The rest of a record is stored
    unchanged."""
    lines = [
        b'{"kind": "post", "producer": "bob", "value": 1e0}',
        b'{"kind":"follow","consumer":"ann","producer":"bob"}',
        b'{"kind":"post","producer":"bob","value":18446744073709551616}  ',
    ]
    answer = client.post("/feeds/events", content=b"\n".join(lines), headers=NDJSON).json()
    follow(client, "ann", "eve")
    found = stored(made.log)
    assert found[0].startswith(lines[0][:-1])
    assert found[2].startswith(lines[2].rstrip()[:-1])
    records = list(map(json.loads, found))
    times = [one["at"] for one in records]
    assert times == sorted(set(times))
    assert answer["ids"] == [records[0]["id"], records[2]["id"]]
    assert len(set(answer["ids"])) == 2


def test_a_single_record(made: FeedStore, client: httpx.Client):
    """As JSON, laid out as one likes."""
    answer = client.post("/feeds/events", json=said("bob", id="1"))
    assert answer.json() | {"first": 0} == {
        "stream": "feeds.events",
        "accepted": 1,
        "refused": [],
        "refused_count": 0,
        "first": 0,
        "repeated": False,
        "ids": ["1"],
    }
    pretty = json.dumps({"kind": "delete", "producer": "bob", "id": "1"}, indent=2)
    headers = {"Content-Type": "application/json"}
    assert client.post("/feeds/events", content=pretty, headers=headers).status_code == 200
    assert len(stored(made.log)) == 2


def test_lines_that_are_refused_are_named(client: httpx.Client):
    """The others are taken; when none can be, the status says so."""
    lines = [
        json.dumps(said("bob", id="1")),
        '{"kind": "poste", "producer": "bob"}',
        "",
        json.dumps(said("bob", id="x" * 300)),
        json.dumps(said("b\x1fob")),
        "{",
        json.dumps(said("bob", at=LATER * 9)),
        "17",
    ]
    answer = client.post("/feeds/events", content="\n".join(lines), headers=NDJSON)
    assert answer.status_code == 200
    found = answer.json()
    assert (found["accepted"], found["ids"]) == (1, ["1"])
    assert [one["line"] for one in found["refused"]] == [2, 4, 5, 6, 7, 8]
    errors = [one["error"] for one in found["refused"]]
    assert "did you mean 'post'" in errors[0]
    assert "1 to 200 characters" in errors[1]
    assert "control characters" in errors[2]
    assert "whole JSON value" in errors[3]
    assert "ahead of the server" in errors[4]
    assert "must be an object" in errors[5]
    none = client.post("/feeds/events", json={"kind": "post", "producer": "bob"})
    assert none.status_code == 422
    assert "must have 'value'" in none.json()["error"]


def test_a_request_sent_again_counts_once(made: FeedStore, client: httpx.Client):
    """Under the same key: it is told the ids that it was told first."""
    records = [said("bob"), said("bob", id="mine"), said("bob")]
    first = tell(client, *records, **{"Idempotency-Key": "one"})
    again = tell(client, *records, **{"Idempotency-Key": "one"})
    assert (first["repeated"], again["repeated"]) == (False, True)
    assert again["ids"] == first["ids"]
    assert len(first["ids"]) == 3
    assert len(stored(made.log)) == 3


def test_a_whole_time_may_be_written_with_a_fraction(client: httpx.Client, made: FeedStore):
    """7.0 is an integer to JSON, and to the OpenAPI document; it is stored as 7."""
    follow(client, "ann", "bob")
    tell(client, said("bob", id="1", at=7.0))
    tell(client, {"kind": "seen", "consumer": "ann", "upto": [7.0, "bob", "1"]})
    post, seen = (json.loads(line) for line in stored(made.log)[-2:])
    assert [type(number) for number in (post["at"], seen["upto"][0])] == [int, int]
    assert page(client)["seen"] == [7, "bob", "1"]


def test_stamps_stay_above_over_restarts(made: FeedStore):
    """A restarted server stamps above its predecessor's stamps, even if the clock is behind."""
    with asked(made.path) as client:
        tell(client, said("bob"))
        ahead = json.loads(stored(made.log)[0])["at"] + 30_000_000
        tell(client, said("bob", at=ahead))
    with asked(made.path) as client:
        tell(client, said("bob"))
    assert json.loads(stored(made.log)[-1])["at"] == ahead + 1


def test_times_rise_whoever_sends_at_once(made: FeedStore, client: httpx.Client):
    """Records of many clients are in the log in the order of their times."""

    def send(number: int) -> None:
        if number % 3:
            tell(client, said(f"p{number}"), said(f"p{number}"))
        else:
            follow(client, "ann", f"p{number}")

    with ThreadPoolExecutor(8) as many:
        list(many.map(send, range(120)))
    times = [json.loads(line)["at"] for line in stored(made.log)]
    assert len(times) == 200
    assert times == sorted(set(times))


def test_a_time_of_the_client_undoes_nothing(made: FeedStore, client: httpx.Client):
    """A delete from a clock that is behind deletes all the same; a post keeps its time."""
    early = 1_600_000_000_000_000
    follow(client, "ann", "bob")
    tell(client, said("bob", id="1"), said("bob", id="2"), said("bob", id="old", at=early))
    tell(client, {"kind": "delete", "producer": "bob", "id": "1", "at": early})
    tell(client, {"kind": "unfollow", "consumer": "eve", "producer": "bob", "at": early})
    assert ids(client) == ["2", "old"]
    made.batch()
    assert ids(client) == ["2", "old"]
    assert page(client)["items"][1]["ts"] == early
    times = [json.loads(line)["at"] for line in stored(made.log)]
    assert times[3] == early
    assert times[4:] == sorted(times[4:])
    assert times[4] > times[2]


def test_a_body_of_too_many_lines(client: httpx.Client):
    """The body must be sent in parts, and none of it is accepted."""
    body = (json.dumps(said("bob")) + "\n") * 20_001
    answer = client.post("/feeds/events", content=body, headers=NDJSON)
    assert answer.status_code == 413
    assert "at most 20000 lines" in answer.json()["error"]


def test_records_through_the_stream_itself(client: httpx.Client):
    """POST /streams/NAME.events takes whole records, and they are seen as well."""
    at = 1_700_000_000_000_000
    for record in ({"kind": "follow", "consumer": "ann", "producer": "bob"}, said("bob", id="1")):
        answer = client.post("/streams/feeds.events", json={**record, "at": at})
        assert answer.status_code == 200, answer.text
    assert ids(client) == ["1"]
    assert client.post("/streams/feeds.events", json=said("bob")).status_code == 422


def test_a_blocked_producer_is_not_followed(made: FeedStore, client: httpx.Client):
    """It cannot be followed until it is unblocked, whether or not the block has been processed."""
    tell(client, {"kind": "block", "consumer": "ann", "producer": "bob"})
    for _ in range(2):
        answer = client.put("/feeds/ann/follows/bob")
        assert answer.status_code == 409
        assert "blocked" in answer.json()["error"]
        made.batch()
    tell(client, {"kind": "unblock", "consumer": "ann", "producer": "bob"})
    follow(client, "ann", "bob")


def test_whom_a_consumer_follows(made: FeedStore, client: httpx.Client):
    """In pages by name, those that are pending too."""
    for number in range(5):
        follow(client, "ann", f"p{number}")
    made.batch()
    client.delete("/feeds/ann/follows/p3")
    follow(client, "ann", "p5")
    found: list[str] = []
    cursor: dict[str, str] = {}
    while True:
        answer = client.get("/feeds/ann/follows", params={"limit": 2, **cursor}).json()
        assert answer["count"] == 5
        found += [one["producer"] for one in answer["follows"]]
        assert {one["side"] for one in answer["follows"]} == {"pull"}
        if answer["next"] is None:
            break
        cursor = {"cursor": answer["next"]}
    assert found == ["p0", "p1", "p2", "p4", "p5"]


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("/feeds/ann?limit=0", 400, "limit must be"),
        ("/feeds/ann?limits=3", 400, "did you mean 'limit'"),
        ("/feeds/ann?cursor=xyz", 400, "cursor must be"),
        ("/feeds/ann?coherency=globle", 400, "did you mean 'global'"),
        ("/feeds/ann?feeds=feedz", 404, "did you mean 'feeds'"),
        ("/feeds/a%1Fb", 400, "control characters"),
        (f"/feeds/{'x' * 201}", 400, "1 to 200 characters"),
        ("/feeds/ann/follows?limit=a", 400, "limit"),
        ("/feeds/ann/live?cursor=abc", 400, "cursor must be"),
        ("/feeds/ann?cursor=", 400, "cursor must be"),
        (f"/feeds/ann?cursor={'A' * 40}", 404, "cursor must be"),
        (f"/feeds/ann/live?cursor={'A' * 40}", 404, "cursor must be"),
        (f"/feeds/ann?coherency=per-producer&cursor={OLDER}", 409, "must be the cursor's"),
        (f"/feeds/ann/live?cursor={OLDER}", 409, "which leads to newer items"),
        ("/feeds/ann/live?coherency=all", 400, "coherency must be one of"),
        ("/feeds/ann/live?why=yes", 400, "why must be 1 or 0"),
        ("/feeds/a%0Ab/live", 400, "control characters"),
    ],
)
def test_what_is_asked_wrongly(client: httpx.Client, path: str, status: int, words: str):
    """The answer says what is wrong."""
    answer = client.get(path)
    assert answer.status_code == status, answer.text
    assert words in answer.json()["error"]


def test_names_of_any_characters(client: httpx.Client):
    """A slash, a percent sign, other scripts, and names that are words of paths."""
    for consumer, producer in (("a/b", "100%"), ("Ünï", "名前"), ("events", "follows")):
        path = f"/feeds/{quote(consumer, safe='')}/follows/{quote(producer, safe='')}"
        assert client.put(path).json()["follows"] is True
        tell(client, said(producer, id="1"))
        assert ids(client, consumer) == ["1"]


def test_several_feeds_of_one_application(tmp_path: Path):
    """Each has its own posts and follows; which is meant must be said."""
    made = FeedStore(tmp_path / "store", "work", "play")
    with asked(made.path) as client:
        unsaid = client.get("/feeds/ann")
        assert unsaid.status_code == 400
        assert "work, play" in unsaid.json()["error"]
        for name in ("work", "play"):
            assert client.put(f"/feeds/ann/follows/bob?feeds={name}").status_code == 200
            record = {**said("bob"), "id": name}
            assert client.post(f"/feeds/events?feeds={name}", json=record).status_code == 200
        assert ids(client, feeds="work") == ["work"]
        assert ids(client, feeds="play") == ["play"]


def test_answers_are_as_the_document_says(made: FeedStore, client: httpx.Client):
    """Each has exactly the fields that the OpenAPI document names."""
    paths = document()["paths"]

    def check(path: str, method: str, answer: httpx.Response) -> None:
        assert answer.status_code == 200, answer.text
        content = paths[path][method]["responses"]["200"]["content"]
        assert misfits(answer.json(), content["application/json"]["schema"]) == []

    follows = "/feeds/{consumer}/follows"
    check(follows + "/{producer}", "put", client.put("/feeds/ann/follows/bob"))
    check("/feeds/events", "post", client.post("/feeds/events", json=said("bob")))
    check("/feeds/{consumer}", "get", client.get("/feeds/ann?why=1&unread=1"))
    made.batch()
    made.settle()
    check("/feeds/{consumer}", "get", client.get("/feeds/ann?why=1&coherency=per-producer"))
    check("/feeds/{consumer}", "get", client.get("/feeds/nobody"))
    check(follows, "get", client.get("/feeds/ann/follows"))
    check("/feeds", "get", client.get("/feeds"))
    check(follows + "/{producer}", "delete", client.delete("/feeds/ann/follows/bob"))
