"""A server with narrow limits, to send all kinds of requests to."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from guarding import make
from served import served


@pytest.fixture(scope="module")
def url(tmp_path_factory) -> Iterator[str]:
    """Its address: bodies of at most 100 kB, and little patience with whoever is slow."""
    store = make(tmp_path_factory.mktemp("guard") / "store")
    with served(store, max_body=100_000, body_timeout=0.6, stall=1.0, hosts=("mill.test",)) as url:
        yield url
