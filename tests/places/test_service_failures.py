"""The errors for an object storage that cannot be used: the cause, and what to do."""

from __future__ import annotations

import socket
from collections.abc import Callable

import pytest

from fault_runs.s3_server import S3Server
from millstream.errors import PlaceError
from millstream.places.object_storage import ObjectPlace
from millstream.places.place import Place

OPERATIONS: dict[str, Callable[[Place], object]] = {
    "put": lambda place: place.put("x", b"1"),
    "create": lambda place: place.create("x", b"1"),
    "get": lambda place: place.get("x"),
    "get a range": lambda place: place.get("x", 1, 3),
    "list": lambda place: list(place.list("x/")),
    "delete": lambda place: place.delete(["x"]),
}
operations = pytest.mark.parametrize("operation", OPERATIONS)


def refusal(address: str, operation: str) -> str:
    """Returns the error that the user sees."""
    with pytest.raises(PlaceError) as caught:
        OPERATIONS[operation](ObjectPlace(address))
    said = str(caught.value)
    assert said.startswith(address), said
    assert "\n" not in said
    return said


@pytest.mark.services
@operations
def test_a_missing_bucket_is_no_missing_object(s3: S3Server, operation: str) -> None:
    """Else a wrong name of a bucket would look like an empty store."""
    said = refusal("s3://no-such-bucket/app", operation)
    assert "there is no such bucket" in said
    assert "create it, or name another" in said


@pytest.mark.services
@operations
@pytest.mark.parametrize("name", ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"])
def test_wrong_credentials_are_named(
    s3: S3Server, operation: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A key that is not known, and a secret that is not the key's."""
    monkeypatch.setenv(name, "wrong")
    said = refusal(s3.address("app"), operation)
    assert "the credentials are refused" in said
    assert "AWS_ACCESS_KEY_ID" in said


@pytest.mark.services
@operations
def test_missing_credentials_are_named(
    s3: S3Server, operation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then the machine's role is asked for, which here is nowhere."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    assert "there are no credentials" in refusal(s3.address("app"), operation)


@operations
def test_a_server_that_is_away_is_named(operation: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With its address, so that a wrong one is seen."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        endpoint = f"http://127.0.0.1:{probe.getsockname()[1]}"  # bound, and not listened at
        for name, value in S3Server(endpoint, 0).environ.items():
            monkeypatch.setenv(name, value)
        said = refusal("s3://bucket/app", operation)
    assert f"cannot be reached at {endpoint}" in said
    assert "is it up, is AWS_ENDPOINT_URL right" in said


def test_an_address_that_is_none_is_refused() -> None:
    """By whoever opens the place, before any request."""
    with pytest.raises(PlaceError, match="s3://b"):
        ObjectPlace("s3://b\x00d d/").get("x")
