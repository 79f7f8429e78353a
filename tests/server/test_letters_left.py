"""Letters that were retried or removed in the status: they need no attention any more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
from payments_store import Payments
from served import asked

from millstream.letters.retry_log import clear_letters, retry_letters
from millstream.letters.selection import LetterFilter
from millstream.log.stream_logs import FolderLogs


def attention(client: httpx.Client) -> list[str]:
    """Returns the status's conditions about letters and late events."""
    items = client.get("/status").json()["attention"]
    return [item["text"] for item in items if item["kind"] in ("dead letters", "late")]


def late(number: int) -> dict[str, Any]:
    return {"ts": number, "stream": "payments", "key": "card 1", "value": {"amount": number}}


def test_what_was_retried_needs_no_attention(tmp_path: Path) -> None:
    """Letter by letter; a new letter does. The counts stay."""
    store = Payments(tmp_path / "store")
    logs = FolderLogs(store.path / "logs")
    store.fail("card 1", "card 2", error="ValueError: no amount")
    store.append("late", late(1), late(2))
    store.batch(late=2)
    with asked(store.path) as client:
        assert attention(client) == [
            "2 dead letters (score 2)",
            "2 events came too late for event time",
        ]
        retry_letters(logs, LetterFilter(key="card 1"), {})
        retry_letters(logs, LetterFilter(kind="late", limit=1), {})
        assert attention(client) == [
            "1 dead letter left of 2 (score 2)",
            "1 event came too late for event time",
        ]
        retry_letters(logs, LetterFilter(), {})
        retry_letters(logs, LetterFilter(kind="late"), {})
        assert attention(client) == []
        status = client.get("/status").json()
        assert (status["dead_letters"], status["late"]) == (2, 2)
        assert status["letters_left"] == {"dead_letters": 0, "late": 0}
        store.fail("card 3", error="ValueError: no amount")
        assert attention(client) == ["1 dead letter left of 3 (score 3)"]


def test_what_was_removed_needs_no_attention(tmp_path: Path) -> None:
    """Later letters do, whatever was retried before."""
    store = Payments(tmp_path / "store")
    logs = FolderLogs(store.path / "logs")
    store.fail("card 1", "card 2", error="ValueError: no amount")
    retry_letters(logs, LetterFilter(key="card 1"), {})
    with asked(store.path) as client:
        clear_letters(logs, "deadletters")
        assert attention(client) == []
        store.fail("card 3", error="ValueError: no amount")
        assert attention(client) == ["1 dead letter left of 3 (score 3)"]


def test_records_say_which_of_them_were_retried(tmp_path: Path) -> None:
    """A page of letters has the numbers of those that were; of other streams it has none."""
    store = Payments(tmp_path / "store")
    store.fail("card 1", "card 2", "card 3", error="ValueError: no amount")
    retry_letters(FolderLogs(store.path / "logs"), LetterFilter(key="card 2"), {})
    with asked(store.path) as client:
        page = client.get("/streams/deadletters/records?from=0").json()
        assert [record["record"] for record in page["records"]] == [0, 1, 2]
        assert page["retried"] == [1]
        assert "retried" not in client.get("/streams/payments/records?from=0").json()
