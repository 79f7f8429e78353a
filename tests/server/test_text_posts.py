"""Lines of text sent to a source: POST /streams/{name} as text/plain."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from checkins import checkins_store, stored
from served import MadeStore, asked


@pytest.fixture
def made(tmp_path: Path) -> MadeStore:
    return checkins_store(tmp_path / "store")


@pytest.fixture
def client(made: MadeStore) -> Iterator[httpx.Client]:
    with asked(made.path) as client:
        yield client


def test_lines_of_text(client: httpx.Client, made: MadeStore) -> None:
    """Lines become records by the source's pattern, and records of several lines are joined. A line
    that does not match is refused, with its number."""
    body = b"10:00 failed\r\n  at f\n\n10:01 fine\n10:0x what\n"
    answer = client.post("/streams/texts", content=body, headers={"Content-Type": "text/plain"})
    assert answer.status_code == 200
    said = answer.json()
    assert (said["accepted"], said["refused_count"]) == (2, 1)
    assert [(one["line"], one["text"]) for one in said["refused"]] == [(5, "10:0x what")]
    assert "does not match the pattern" in said["refused"][0]["error"]
    assert [json.loads(line) for line in stored(made.home.log_of("texts"))] == [
        {"at": "10:00", "text": "failed\n  at f"},
        {"at": "10:01", "text": "fine"},
    ]


def test_lines_of_text_without_a_pattern(client: httpx.Client, made: MadeStore) -> None:
    """A line is a record with the line in it; key and time must be there as of any record."""
    plain = {"Content-Type": "text/plain; charset=utf-8"}
    answer = client.post("/streams/clicks", content="één\n\ntwee".encode(), headers=plain)
    assert answer.json()["accepted"] == 2
    assert [json.loads(line) for line in stored(made.home.log_of("clicks"))[-2:]] == [
        {"line": "één"},
        {"line": "twee"},
    ]
    answer = client.post("/streams/checkins", content=b"x", headers=plain)
    assert answer.status_code == 422
    assert "the record has no field 'user'" in answer.json()["error"]
