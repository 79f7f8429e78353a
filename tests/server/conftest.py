"""A server with narrow limits, to send all kinds of requests to; a browser; and the check that an
attacked server is unharmed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from abuse import Door, unharmed
from browser import launched
from guarding import make
from playwright.sync_api import Browser
from served import served


@pytest.fixture(scope="module")
def url(tmp_path_factory) -> Iterator[str]:
    """Its address: bodies of at most 100 kB, and little patience with whoever is slow."""
    store = make(tmp_path_factory.mktemp("guard") / "store")
    with served(store, max_body=100_000, body_timeout=0.6, stall=1.0, hosts=("mill.test",)) as url:
        yield url


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """The browser of a module's tests."""
    with launched() as browser:
        yield browser


@pytest.fixture
def stays_unharmed(door: Door) -> Iterator[None]:
    """Checks after a test that the server which it attacks still works."""
    with unharmed(door):
        yield
