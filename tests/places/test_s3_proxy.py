"""The proxy before the S3 server: the requests that it passes on and counts, and places behind
it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from fault_runs.agents.running import free_port
from fault_runs.processes import start, wait_until
from fault_runs.s3_proxy import ProxyControl, ProxyFaults
from fault_runs.s3_server import S3Server
from millstream.errors import PlaceError
from millstream.places.place import Place, created, persistent
from millstream.places.place_address import place_at

pytestmark = pytest.mark.services


@pytest.fixture
def proxy(s3: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ProxyControl]:
    """A proxy that the environment names instead of the server."""
    listen = f"127.0.0.1:{free_port()}"
    control = ProxyControl(tmp_path / "control")
    words = [listen, s3.endpoint.removeprefix("http://"), str(tmp_path / "control")]
    running = start(["-m", "fault_runs.s3_proxy", *words], tmp_path / "said")
    try:
        assert wait_until(control.listens, running), running.said()
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{listen}")
        yield control
    finally:
        running.kill()


@pytest.fixture
def place(proxy: ProxyControl, s3: S3Server) -> Place:
    return place_at(s3.address(uuid4().hex))


def test_it_passes_on_and_counts(proxy: ProxyControl, place: Place) -> None:
    """Every operation works through it; requests are counted by method and kind of object."""
    place.put("changes/1/x", b"x" * 1_000_000)
    assert place.get("changes/1/x") == b"x" * 1_000_000
    assert place.get("changes/1/x", 5, 7) == b"xx"
    assert place.create("commits/1", b"")
    assert not place.create("commits/1", b"2")
    assert [listed.name for listed in place.list("c")] == ["changes/1/x", "commits/1"]
    counts = proxy.counts(reset=True)
    assert counts.methods == {"PUT": 3, "GET": 3}
    assert counts.kinds == {"PUT changes": 1, "GET changes": 2, "PUT commits": 2, "GET list": 1}
    place.delete(["changes/1/x"])
    assert place.get("changes/1/x") is None
    assert sum(proxy.counts().methods.values()) == 2


def test_a_service_that_fails_now_and_then_is_not_noticed(
    proxy: ProxyControl, place: Place
) -> None:
    """With 5% of requests failing and 5% of answers lost, nothing goes wrong and nothing twice."""
    proxy.order(ProxyFaults(fails=0.05, loses_answer=0.05, seed=3))
    for number in range(200):
        mine, name = f"mine {number}".encode(), f"commits/{number}"
        won = persistent(lambda name=name, mine=mine: created(place, name, mine), 30.0)  # type: ignore[misc]
        assert won
        assert not persistent(lambda name=name: created(place, name, b"other"), 30.0)  # type: ignore[misc]
        assert persistent(lambda name=name: place.get(name), 30.0) == mine  # type: ignore[misc]
    counts = proxy.counts()
    assert counts.failed > 10
    assert counts.lost > 10


def test_a_service_that_is_away_comes_back(proxy: ProxyControl, place: Place) -> None:
    """Meanwhile the caller gets an error, and a caller that waits gets its answer once the service
    is back."""
    place.put("x", b"1")
    proxy.order(ProxyFaults(away=True))
    with pytest.raises(PlaceError, match="cannot be reached at"):
        place.get("x")
    asked = 0

    def attempt() -> bytes | None:
        nonlocal asked
        asked += 1
        if asked == 3:
            proxy.order(ProxyFaults())
        return place.get("x")

    assert persistent(attempt, 60.0) == b"1"
    assert proxy.counts().refused > 0


def test_a_delay_is_added(proxy: ProxyControl, place: Place) -> None:
    """To every request."""
    place.put("x", b"1")
    proxy.order(ProxyFaults(delay_ms=50))
    began = time.monotonic()
    for _ in range(4):
        place.get("x")
    assert time.monotonic() - began >= 0.2
