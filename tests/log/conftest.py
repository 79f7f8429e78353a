"""Fixtures of the log's tests."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the log will be: some folders above it are missing too."""
    return tmp_path / "store" / "logs" / "clicks"
