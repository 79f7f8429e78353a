"""The commands that look after a store: `millstream verify` and `millstream vacuum`."""

from __future__ import annotations

import fcntl
from pathlib import Path

import pytest
from verifying.filled_store import an_app, clicks, dress, fill

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def store(here: Path) -> Path:
    """A store that is whole, whose slates expire after 30 microseconds."""
    path = here / ".millstream" / "filled"
    dress(path, fill(path, an_app("30us"), [clicks(0, 500), clicks(500, 600)]))
    return path


def test_verify_a_whole_store(store: Path, millstream) -> None:
    """Exit 0, and one line that says what was looked at."""
    result = millstream("verify")
    assert result.exit_code == 0, result.output
    assert result.output.startswith("looked at ")
    assert "2 shards" in result.output
    assert result.output.endswith("all is well\n")


def test_verify_a_damaged_store(store: Path, millstream) -> None:
    """Exit 1, and a line with the file, what is wrong and how to repair it."""
    progress = store / "progress"
    progress.write_bytes(progress.read_bytes().replace(b'"batch":1', b'"batch":2'))
    result = millstream("verify", "--store", str(store))
    assert result.exit_code == 1
    first, *_, last = result.output.splitlines()
    assert str(progress) in first
    assert "to repair it: restore it from a copy of the store" in first
    assert last.endswith("wrong")


def test_vacuum(store: Path, millstream) -> None:
    """The command reports the number of removed slates and tombstones, and the size of the
    store."""
    result = millstream("vacuum")
    assert result.exit_code == 0, result.output
    assert "count: 66 expired slates deleted" in result.output
    assert "bytes before" in result.output
    assert millstream("verify").exit_code == 0


def test_vacuum_leaves_slates_whose_changes_are_published(here: Path, millstream) -> None:
    """A sweep publishes that a slate is gone, and a vacuum could not: else tables and topics would
    keep it for ever."""
    app = an_app("30us")
    app.changes("count")
    fill(here / ".millstream" / "filled", app, [clicks(0, 500), clicks(500, 600)])
    result = millstream("vacuum")
    assert result.exit_code == 0, result.output
    assert "seen: 66 expired slates deleted" in result.output
    assert "count: " not in result.output


def test_vacuum_while_the_application_runs(store: Path, millstream) -> None:
    """The command is refused, and nothing changes."""
    with (store / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        result = millstream("vacuum")
    assert result.exit_code == 1
    assert "another driver holds this store" in result.output


def test_a_store_that_is_not_there(here: Path, millstream) -> None:
    """Both commands say so, and make nothing."""
    for command in ("verify", "vacuum"):
        assert millstream(command, "--store", "nowhere").exit_code != 0
    assert not (here / "nowhere").exists()
