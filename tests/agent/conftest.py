"""Fixtures of the agent's tests: the root that it sends to, and the log that it reads."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from taking_root import Root


@pytest.fixture
def root() -> Iterator[Root]:
    """A root that takes all that agents send."""
    root = Root()
    yield root
    root.stop()


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Where the log will be."""
    return tmp_path / "app.log"
