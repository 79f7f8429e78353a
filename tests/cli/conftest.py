"""Fixtures of the command line's tests: a runner and a working directory."""

import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from millstream.cli.main import main


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    """An empty directory to stand in; what it imports is forgotten afterwards."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.chdir(tmp_path)
    for name in ("MILLSTREAM_STORE", "MILLSTREAM_SHARDS"):
        monkeypatch.delenv(name, raising=False)
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        file = getattr(sys.modules[name], "__file__", None)
        if file and file.startswith(str(tmp_path)):
            del sys.modules[name]


@pytest.fixture
def millstream(here):
    """Call the command with these words."""

    def call(*words: str) -> Result:
        result = CliRunner().invoke(main, list(words))
        assert result.exception is None or isinstance(result.exception, SystemExit), result.output
        assert "Traceback" not in result.output or "--debug" in words
        return result

    return call


@pytest.fixture
def retail(here, millstream) -> Path:
    """A new application in ./retail."""
    assert millstream("new", "retail").exit_code == 0
    return here / "retail"
