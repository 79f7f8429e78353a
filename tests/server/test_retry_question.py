"""The body of POST /deadletters/retry."""

from __future__ import annotations

import pytest
from msgspec import structs
from served import asked
from shop_store import stocked

from millstream.client import Client
from millstream.errors import ClientError
from millstream.letters.selection import LetterFilter
from millstream.messages.letters import RetryQuestion


def test_it_asks_for_what_a_filter_has():
    """Field by field, with the same defaults."""

    def fields(of: type) -> list[tuple[str, object]]:
        return [(one.name, one.default) for one in structs.fields(of)]

    assert fields(RetryQuestion) == fields(LetterFilter)


@pytest.mark.parametrize(
    ("question", "status"),
    [
        ({}, 200),
        ({"limit": 5.0, "since": 0.0}, 200),
        ({"limit": 5.5}, 400),
        ({"limit": -1}, 400),
        ({"limit": "5"}, 400),
        ({"kind": "other"}, 400),
        ({"function": "misspelled"}, 404),
        ({"kind": "diverted"}, 404),
        ({"kind": "diverted", "function": "count"}, 404),
    ],
)
def test_what_is_taken(tmp_path, question, status):
    """A whole number is one in JSON's sense; a kind and bounds must be right; for diverted events
    an update must be named that diverts."""
    with asked(stocked(tmp_path / "store").path) as client:
        found = client.post("/deadletters/retry", json={"dry_run": True, **question})
        assert found.status_code == status, found.text
        if status == 200:
            assert found.json()["given"] == 1


def test_a_client_retries(tmp_path):
    """With the same filters, and each letter once."""
    with asked(stocked(tmp_path / "store").path) as served, Client(str(served.base_url)) as client:
        assert client.retry(stream="elsewhere").given == 0
        assert client.retry(dry_run=True).given == 1
        assert client.retry().given == 1
        assert client.retry().given == 0
        assert client.retry(function="recognise").given == 0
        with pytest.raises(ClientError, match="no function 'recognize'; did you mean 'recognise'"):
            client.retry(function="recognize")
