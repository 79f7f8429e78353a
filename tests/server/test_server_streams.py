"""POST /streams/{name}, GET /streams and GET /streams/{name}/records, over loopback."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from checkins import JSON, NDJSON, append, checkin, checkins_store, post, stored
from raw_http import connected, head
from served import MadeStore, asked, until


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> MadeStore:
    return checkins_store(tmp_path_factory.mktemp("streams") / "store")


@pytest.fixture(scope="module")
def client(made: MadeStore) -> Iterator[httpx.Client]:
    with asked(made.path, max_body=10 << 20) as client:
        yield client


@pytest.fixture
def before(made: MadeStore) -> int:
    """Returns the number of check-ins before the test."""
    return len(stored(made.home.log_of("checkins")))


def checkins(made: MadeStore, before: int) -> list[bytes]:
    """The check-ins that came since."""
    return stored(made.home.log_of("checkins"))[before:]


def test_one_event(client: httpx.Client, made: MadeStore, before: int) -> None:
    """A JSON body is one event; the answer says which record it became."""
    answer = client.post("/streams/checkins", content=checkin("ann"), headers=JSON)
    assert answer.status_code == 200
    assert answer.json() == {
        "stream": "checkins",
        "accepted": 1,
        "refused": [],
        "refused_count": 0,
        "first": before,
        "repeated": False,
    }
    assert checkins(made, before) == [checkin("ann")]


def test_one_event_pretty_printed(client: httpx.Client, made: MadeStore, before: int) -> None:
    """An event in any layout is stored in one line."""
    body = json.dumps({"user": "bob", "time": 5, "note": "a\nb"}, indent=4).encode()
    answer = client.post("/streams/checkins", content=body, headers=JSON)
    assert answer.json()["accepted"] == 1
    assert checkins(made, before) == [b'{"user":"bob","time":5,"note":"a\\nb"}']


@pytest.mark.parametrize(
    "kind",
    [
        "application/x-ndjson",
        "application/ndjson",
        "application/jsonl",
        "Application/X-NDJSON; charset=UTF-8",
    ],
)
def test_one_event_a_line(client: httpx.Client, made: MadeStore, before: int, kind: str) -> None:
    """NDJSON, under any of its names, is one event a line; blank lines are nothing."""
    lines = [checkin(f"user {number}") for number in range(500)]
    answer = post(client, b"\n".join(lines) + b"\n\n", Content_Type=kind)
    assert answer.status_code == 200
    assert answer.json()["accepted"] == 500
    assert answer.json()["first"] == before
    assert checkins(made, before) == lines


def test_wrong_lines_in_the_middle(client: httpx.Client, made: MadeStore, before: int) -> None:
    """Broken JSON, bad UTF-8 and records without key or time are refused by line; others stay."""
    good = [checkin("a"), checkin("b")]
    wrong = [b'{"user":"c"', b'{"user":"\xff","time":1}', b'{"time":1}', b'{"user":"d","time":"?"}']
    answer = post(client, b"\n".join([good[0], *wrong, b"", good[1]]))
    assert answer.status_code == 200
    found = answer.json()
    assert found["accepted"] == 2
    assert found["refused_count"] == 4
    assert [one["line"] for one in found["refused"]] == [2, 3, 4, 5]
    reasons = [one["error"] for one in found["refused"]]
    assert "ends too early" in reasons[0]
    assert "not UTF-8" in reasons[1]
    assert "no field 'user'" in reasons[2]
    assert "ISO-8601" in reasons[3]
    assert found["refused"][0]["text"] == '{"user":"c"'
    assert checkins(made, before) == good


def test_all_lines_refused(client: httpx.Client, made: MadeStore, before: int) -> None:
    """When nothing can be accepted the answer is an error, with every line's reason."""
    answer = post(client, b"{}\n" * 150)
    assert answer.status_code == 422
    found = answer.json()
    assert found["accepted"] == 0
    assert found["first"] is None
    assert found["refused_count"] == 150
    assert len(found["refused"]) == 100
    assert "nothing was accepted: all 150 records" in found["error"]
    assert found["status"] == 422
    one = client.post("/streams/checkins", content=b"[1, 2", headers=JSON)
    assert one.status_code == 422
    assert "ends too early" in one.json()["error"]
    assert checkins(made, before) == []


@pytest.mark.parametrize("kind", [JSON, NDJSON])
@pytest.mark.parametrize("body", [b"", b"\n", b" \r\n "])
def test_an_empty_body(client: httpx.Client, kind: dict[str, str], body: bytes) -> None:
    """A request without any event is a mistake."""
    answer = client.post("/streams/checkins", content=body, headers=kind)
    assert answer.status_code == 400
    assert "empty" in answer.json()["error"]


def test_a_line_that_is_too_long(client: httpx.Client, made: MadeStore, before: int) -> None:
    """A line over 8 MiB is refused, and those around it are accepted."""
    long = b'{"user":"a","time":1,"x":"' + b"x" * (8 << 20) + b'"}'
    answer = post(client, b"\n".join([checkin("a"), long, checkin("b")]))
    assert answer.status_code == 200
    (refused,) = answer.json()["refused"]
    assert refused["line"] == 2
    assert "8388608 bytes" in refused["error"]
    assert refused["text"] == long[:200].decode()
    assert checkins(made, before) == [checkin("a"), checkin("b")]


def test_a_body_of_many_pieces(client: httpx.Client, made: MadeStore, before: int) -> None:
    """A large body is accepted whole, and the last line's number is right."""
    lines = [checkin(f"{number:0100d}") for number in range(20_000)]
    answer = post(client, b"\n".join([*lines, b"?"]))
    assert answer.json()["accepted"] == 20_000
    assert [one["line"] for one in answer.json()["refused"]] == [20_001]
    assert checkins(made, before) == lines


def test_a_body_that_is_too_large(client: httpx.Client, made: MadeStore, before: int) -> None:
    """Over the limit nothing is accepted, and the limit is named."""
    answer = post(client, checkin("a") + b"\n" * (10 << 20))
    assert answer.status_code == 413
    assert str(10 << 20) in answer.json()["error"]
    assert checkins(made, before) == []


def test_a_body_of_too_many_lines(tmp_path: Path) -> None:
    """Even short lines count, since the memory for each is many times its size."""
    lines = b"12\n" * 500_000
    with asked(checkins_store(tmp_path / "store").path) as client:
        client.timeout = 60
        answer = client.post("/streams/clicks", content=lines + b"3", headers=NDJSON)
        assert answer.status_code == 413
        assert "500000 lines" in answer.json()["error"]
        answer = client.post("/streams/clicks", content=lines, headers=NDJSON)
        assert answer.json()["accepted"] == 500_000


@pytest.mark.parametrize(
    ("headers", "said"),
    [
        ({"Content-Type": "text/html"}, "text/plain for lines of text; got text/html"),
        ({"Content-Type": "text/plain; charset=latin-1"}, "UTF-8"),
        ({"Content-Type": "application/x-www-form-urlencoded"}, "application/json for one event"),
        ({"Content-Type": ""}, "got none"),
        ({"Content-Type": "application/json; charset=utf-16"}, "UTF-8"),
        ({**NDJSON, "Content-Encoding": "gzip"}, "must not be compressed"),
    ],
)
def test_other_content_types(client: httpx.Client, headers: dict[str, str], said: str) -> None:
    """Only JSON and text in UTF-8 are taken; the answer says what to send."""
    answer = client.post("/streams/checkins", content=checkin("a"), headers=headers)
    assert answer.status_code == 415
    assert said in answer.json()["error"]


@pytest.mark.parametrize(
    ("name", "status", "said"),
    [
        ("chekins", 404, "did you mean 'checkins'?"),
        ("recognised", 404, "only sources take events; there are: checkins, clicks"),
        ("counts", 404, "only sources take events"),
        ("deadletters", 404, "only sources take events"),
        ("old", 409, "json:/data/old"),
        ("..%2Flogs", 404, "no stream"),
    ],
)
def test_streams_that_take_no_events(
    client: httpx.Client, name: str, status: int, said: str
) -> None:
    """The answer says why not, and which streams do."""
    answer = client.post(f"/streams/{name}", content=checkin("a"), headers=JSON)
    assert answer.status_code == status
    assert answer.json()["status"] == status
    assert said in answer.json()["error"]


def test_a_source_with_functions(client: httpx.Client, made: MadeStore) -> None:
    """Records whose key a Python function gives are taken as they are."""
    answer = client.post("/streams/clicks", content=b'5\n"x"\n{}', headers=NDJSON)
    assert answer.json()["accepted"] == 3
    assert stored(made.home.log_of("clicks"))[-3:] == [b"5", b'"x"', b"{}"]


def test_a_repeated_request_counts_once(client: httpx.Client, made: MadeStore, before: int) -> None:
    """With the same key and body, the same answer comes, and nothing is added."""
    body = b"\n".join([checkin("a"), b"?", checkin("b")])
    first = post(client, body, Idempotency_Key="order 1")
    again = post(client, body, Idempotency_Key="order 1")
    assert first.json()["repeated"] is False
    assert again.json() == {**first.json(), "repeated": True}
    assert checkins(made, before) == [checkin("a"), checkin("b")]


def test_concurrent_repeats_count_once(client: httpx.Client, made: MadeStore, before: int) -> None:
    """If several requests with one key come at the same time, one counts."""
    body = b"\n".join(checkin(f"user {number}") for number in range(50))
    with ThreadPoolExecutor(8) as threads:
        sent = [threads.submit(post, client, body, Idempotency_Key="at once") for _ in range(16)]
        answers = [one.result().json() for one in sent]
    assert [one["repeated"] for one in answers].count(False) == 1
    assert {(one["first"], one["accepted"]) for one in answers} == {(before, 50)}
    assert len(checkins(made, before)) == 50


def test_a_key_that_was_used_for_something_else(
    client: httpx.Client, made: MadeStore, before: int
) -> None:
    """The same key with another body is a mistake: nothing is accepted."""
    assert post(client, checkin("a"), Idempotency_Key="x").status_code == 200
    answer = post(client, checkin("b"), Idempotency_Key="x")
    assert answer.status_code == 422
    assert "'x'" in answer.json()["error"]
    assert checkins(made, before) == [checkin("a")]


@pytest.mark.parametrize("key", ["", "x" * 201, "caf\xe9", "a\tb"])
def test_keys_that_are_none(client: httpx.Client, key: str) -> None:
    """An idempotency key is 1 to 200 printable ASCII characters."""
    headers = [(b"content-type", b"application/json"), (b"idempotency-key", key.encode("latin-1"))]
    answer = client.post("/streams/checkins", content=checkin("a"), headers=headers)
    assert answer.status_code == 400
    assert "Idempotency-Key" in answer.json()["error"]


def test_requests_at_once(client: httpx.Client, made: MadeStore, before: int) -> None:
    """Each of many requests at once gets its own records, which lie together and in order."""

    def send(number: int) -> tuple[int, int]:
        lines = b"\n".join(checkin(f"{number} {line}") for line in range(20))
        found = post(client, lines).json()
        assert found["accepted"] == 20
        return number, found["first"]

    with ThreadPoolExecutor(8) as threads:
        firsts = list(threads.map(send, range(40)))
    came = checkins(made, before)
    assert len(came) == 800
    for number, first in firsts:
        lines = came[first - before : first - before + 20]
        assert lines == [checkin(f"{number} {line}") for line in range(20)]


def test_a_client_that_leaves(client: httpx.Client, made: MadeStore, before: int) -> None:
    """A whole request is carried out, though nobody waits for the answer."""
    body = checkin("gone")
    url = str(client.base_url)
    request = head(
        url,
        "POST /streams/checkins HTTP/1.1",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
    )
    with connected(url) as connection:
        connection.sendall(request + body)
    assert until(lambda: checkins(made, before)) == [body]
    with connected(url) as connection:
        connection.sendall(request + body[:-1])
    assert client.get("/healthz").status_code == 200
    assert checkins(made, before) == [body]


def test_what_streams_there_are(client: httpx.Client, made: MadeStore, before: int) -> None:
    """All streams, with their kind, what can be done with them and how many records they have."""
    found = {one.pop("name"): one for one in client.get("/streams").json()["streams"]}
    log = made.home.log_of("checkins")
    assert found["checkins"] == {
        "kind": "source",
        "posts": True,
        "tails": True,
        "address": f"log:{log}",
        "records": before,
    }
    assert found["old"] == {
        "kind": "source",
        "posts": False,
        "tails": False,
        "address": "json:/data/old",
        "records": None,
    }
    assert found["counts"]["kind"] == "output"
    assert found["counts"]["tails"]
    assert found["counts"]["records"] == 0
    assert found["recognised"]["kind"] == "inner"
    assert not found["recognised"]["tails"]
    assert found["late"]["kind"] == "late"
    assert found["deadletters"]["kind"] == "deadletters"


def test_pages_of_records(client: httpx.Client, made: MadeStore) -> None:
    """A log is read page by page, from a number, its start, its end or before its end."""
    log = made.home.log_of("deadletters")
    for number in range(0, 30, 10):
        append(log, *(b'{"n":%d}' % n for n in range(number, number + 10)))

    def page(**params: Any) -> tuple[list[int], int, int]:
        answer = client.get("/streams/deadletters/records", params=params)
        found = answer.json()
        assert found["stream"] == "deadletters"
        assert [one["value"]["n"] for one in found["records"]] == [
            one["record"] for one in found["records"]
        ]
        return [one["record"] for one in found["records"]], found["next"], found["end"]

    assert page() == ([], 30, 30)
    assert page(**{"from": "start"}) == (list(range(30)), 30, 30)
    assert page(**{"from": "start", "limit": 12}) == (list(range(12)), 12, 30)
    assert page(**{"from": 12, "limit": 12}) == (list(range(12, 24)), 24, 30)
    assert page(**{"from": 24, "limit": 12}) == (list(range(24, 30)), 30, 30)
    assert page(**{"from": -5}) == (list(range(25, 30)), 30, 30)
    assert page(**{"from": -500, "limit": 1}) == ([0], 1, 30)
    assert page(**{"from": 77}) == ([], 77, 30)


@pytest.mark.parametrize(
    ("path", "status", "said"),
    [
        ("/streams/nothing/records", 404, "no stream 'nothing'"),
        ("/streams/recognised/records", 409, "is kept nowhere"),
        ("/streams/old/records", 409, "reads json:/data/old"),
        ("/streams/counts/records?from=x", 400, "'from' must be"),
        ("/streams/counts/records?limit=0", 400, "'limit' must be"),
        ("/streams/counts/records?limit=1001", 400, "'limit' must be"),
        ("/streams/counts/records?form=1", 400, "did you mean 'from'?"),
    ],
)
def test_pages_that_cannot_be(client: httpx.Client, path: str, status: int, said: str) -> None:
    """A wrong page is an error that says what is right."""
    answer = client.get(path)
    assert answer.status_code == status
    assert said in answer.json()["error"]


def test_pages_of_large_records(client: httpx.Client, made: MadeStore) -> None:
    """A page ends early when its records are large; `next` goes on, and none is left out."""
    line = b'"' + b"x" * 1_000_000 + b'"'
    log = made.home.log_of("counts")
    append(log, *[line] * 6)
    append(log, *[line] * 6)
    at, found = 0, []
    while at < 12:
        page = client.get("/streams/counts/records", params={"from": at}).json()
        found += [one["record"] for one in page["records"]]
        assert 1 <= len(page["records"]) <= 5
        at = page["next"]
    assert found == list(range(12))
