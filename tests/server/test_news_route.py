"""GET and POST /jobs/{name}/news: what agents hear, over loopback."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from threading import Thread
from typing import Any

import httpx
import msgspec
import pytest
from jobs_store import JobStore
from served import asked
from test_server_openapi import misfits

from millstream.log.writer import Entry, LogWriter
from millstream.server.openapi.openapi_document import document

NEWS = "/jobs/errors/news"


@pytest.fixture
def made(tmp_path: Path) -> JobStore:
    made = JobStore(tmp_path / "store")
    tell(made, {"opened": 7}, accepted(1, 3, "web1", "web2"))
    return made


def tell(made: JobStore, *told: Any) -> None:
    """Publishes the root's message on `errors.told`."""
    writer = LogWriter(made.home.log_of("errors.told"))
    lines = [msgspec.json.encode({"ts": 1, "key": "", "value": value}) for value in told]
    writer.append([Entry.of(lines)])
    writer.close()


def accepted(pane: int, until: int, *nodes: str) -> dict[str, Any]:
    return {"accepted": {"pane": pane, "until": until, "nodes": list(nodes)}}


def news(client: httpx.Client, *nodes: str, **asked: Any) -> dict[str, Any]:
    answer = client.get(NEWS, params={"node": list(nodes), **asked})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    written = document()["paths"]["/jobs/{name}/news"]["get"]["responses"]["200"]["content"]
    assert misfits(found, written["application/json"]["schema"]) == []
    return found


def test_all_that_is_known_and_then_what_is_new(made: JobStore) -> None:
    """Without a number the answer has all news; with the last number, newer news of the asker's
    nodes."""
    with asked(made.path) as client:
        first = news(client, "web1")
        assert (first["whole"], first["next"], first["opened"]) == (True, 2, [7])
        assert first["accepted"] == {"web1": [[1, 3]]}
        tell(made, accepted(3, 4, "web2"), {"closed": 7, "reducer": "1/0", "of": 1})
        since = {"life": first["life"], "after": first["next"]}
        second = news(client, "web1", **since)
        assert (second["whole"], second["closed"], second["accepted"]) == (False, [[7, 8]], {})
        body = {"nodes": ["web2"], **since}
        assert client.post(NEWS, json=body).json()["accepted"] == {"web2": [[3, 4]]}


def test_a_question_waits_for_news(made: JobStore) -> None:
    """It is answered when there is news, or without any after the longest wait."""
    with asked(made.path) as client:
        first = news(client, "web1")
        since = {"life": first["life"], "after": first["next"]}
        found: list[dict[str, Any]] = []
        waiting = Thread(target=lambda: found.append(news(client, "web1", wait=20, **since)))
        waiting.start()
        tell(made, accepted(3, 4, "web1"))
        waiting.join(10)
        assert found[0]["accepted"] == {"web1": [[3, 4]]}
        began = time.monotonic()
        assert news(client, "web2", wait=1, **since)["accepted"] == {}
        assert time.monotonic() - began > 0.9


def test_a_server_that_was_restarted_goes_on(made: JobStore) -> None:
    """Numbers are those of the log's records, so a client that continues gets the news since
    then."""
    with asked(made.path) as client:
        first = news(client, "web1")
    tell(made, accepted(3, 4, "web1"))
    with asked(made.path) as client:
        on = news(client, "web1", life=first["life"], after=first["next"])
        assert (on["whole"], on["next"], on["opened"]) == (False, 3, [])
        assert on["accepted"] == {"web1": [[3, 4]]}
        assert news(client, "web1")["accepted"] == {"web1": [[1, 4]]}


def test_what_is_no_question(made: JobStore) -> None:
    """Another job, a number that is none, a wait without end: refused with a sentence."""
    with asked(made.path, token="t" * 20) as client:
        for method, path, status, words in (
            ("GET", "/jobs/error/news", 404, "did you mean 'errors'?"),
            ("GET", f"{NEWS}?after=x", 400, "a whole number"),
            ("GET", f"{NEWS}?wait=21", 400, "from 0 to 20"),
            ("GET", f"{NEWS}?after=1&after=2", 400, "must come once"),
            ("GET", f"{NEWS}?nodes=web1", 400, "did you mean 'node'?"),
            ("POST", NEWS, 400, "a question for news as JSON"),
        ):
            answer = client.request(method, path, content=b"[]" if method == "POST" else None)
            assert answer.status_code == status
            assert words in answer.json()["error"]
        assert client.get(NEWS, headers={"Authorization": ""}).status_code == 401


def test_many_wait_at_once(made: JobStore) -> None:
    """A hundred agents wait, news come, and each hears of its own panes."""

    async def ask(url: str) -> list[dict[str, Any]]:
        async with httpx.AsyncClient(base_url=url, limits=httpx.Limits(max_connections=200)) as one:
            first = (await one.get(NEWS)).json()
            since = {"life": first["life"], "after": first["next"], "wait": 20}
            asking = [
                asyncio.create_task(one.get(NEWS, params={"node": f"n{n}", **since}))
                for n in range(100)
            ]
            await asyncio.sleep(0)
            tell(made, *(accepted(5, 6, f"n{n}") for n in range(100)))
            return [(await answer).json() for answer in asking]

    with asked(made.path) as client:
        found = asyncio.run(ask(str(client.base_url)))
    assert [one["accepted"] for one in found] == [{f"n{n}": [[5, 6]]} for n in range(100)]
