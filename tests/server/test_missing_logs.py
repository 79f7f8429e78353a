"""Logs that are gone are found."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from checkins import append, checkins_store

from millstream.log import readers
from millstream.stores.progress import SourceProgress
from millstream.verifying.store import verify


@pytest.mark.parametrize(
    ("gone", "said"),
    [
        ("checkins", "records of the source were taken from it"),
        ("checkins/readers", "does not know that the store has read it"),
        ("counts", "7 records were written to it"),
        ("deadletters", "2 records were written to it"),
        ("deadletters.retried", "letters were given from it"),
    ],
)
def test_a_log_that_is_gone(tmp_path: Path, gone: str, said: str) -> None:
    """This holds for the logs of a source, its readers, an output, the dead letters and retried
    events."""
    made = checkins_store(tmp_path / "store")
    for stream in ("checkins", "counts", "deadletters", "deadletters.retried"):
        append(made.home.log_of(stream), b"1")
    name = f"{made.home.facts.app}-{made.home.facts.id[:8]}-checkins"
    readers.commit(made.home.log_of("checkins"), name, [0, 0])
    taken = {
        "checkins": SourceProgress(position=[0, 1]),
        "deadletters.retried": SourceProgress(position=[0, 1]),
    }
    made.commit(sources=taken, emitted={"counts": 7}, dead_letters=2)
    before = [str(one) for one in verify(made.path, rows=False).faults]
    assert not any("logs" in one or "retried" in one for one in before)
    shutil.rmtree(made.path / "logs" / gone)
    found = [str(one) for one in verify(made.path, rows=False).faults if "logs" in str(one)]
    assert len(found) == 1
    assert said in found[0]
