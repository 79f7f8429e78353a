"""One Spark session for all tests that need one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    from millstream.spark.session import open_session

    session = open_session("tests", "local[2]", "1g")
    yield session
    session.stop()
