"""A store that can be read and not written: another user's, or one whose rights were taken away."""

from __future__ import annotations

import ctypes
import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from held_lock import hold
from served import MadeStore

from millstream.stores.home import Home
from millstream.stores.reader import SlateReader

NOBODY = 65_534
READ = """
import os, sys
from pathlib import Path
from millstream.errors import StoreError
from millstream.server.lock import ServerLock
from millstream.stores.reader import SlateReader
path = Path(sys.argv[1])
if os.geteuid() == 0:
    os.setuid(int(sys.argv[2]))
try:
    with SlateReader(path) as reader:
        print(reader.get("count", "a").value)
    ServerLock(path).close()
except StoreError as error:
    print(error)
"""

DROP_FROM_BOUNDING_SET, DAC_OVERRIDE, DAC_READ_SEARCH = 24, 1, 2
"""Constants of prctl(2): a program that root then starts has only the rights of the files'
owner."""


@pytest.fixture
def made() -> Iterator[MadeStore]:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        made = MadeStore(Path(folder) / "store", {"count": "dict"})
        made.commit({"count": {"a": {"n": 1}}}, slates={"count": 1})
        yield made
        for path in [made.path, *made.path.rglob("*")]:
            path.chmod(stat.S_IRWXU)


def take_rights(made: MadeStore) -> None:
    """From now on nobody but root may write."""
    for path in [made.path, *made.path.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)


def run_without_rights(made: MadeStore, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a command of one who may not write to the store."""
    take_rights(made)
    return run_as_owner(made, *command)


def run_as_owner(made: MadeStore, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a command with the rights that the modes of the files give, also if this is root."""
    prctl = ctypes.CDLL(None).prctl

    def give_up_rights() -> None:
        for right in (DAC_OVERRIDE, DAC_READ_SEARCH):
            prctl(DROP_FROM_BOUNDING_SET, right, 0, 0, 0)

    return subprocess.run(
        [sys.executable, "-m", "millstream.cli.main", *command, "--store", str(made.path)],
        preexec_fn=None if os.geteuid() else give_up_rights,
        capture_output=True,
        text=True,
        check=False,
    )


def read(made: MadeStore) -> str:
    """Returns the answer for a user who may read the store, but not change it."""
    take_rights(made)
    command = [sys.executable, "-c", READ, str(made.path), str(NOBODY)]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    return found.stdout + found.stderr


def test_it_can_be_read(made):
    """And served."""
    assert read(made) == "{'n': 1}\n"


@pytest.mark.parametrize(
    ("command", "answer"),
    [
        (("slates", "get", "count", "a"), '{"n":1}'),
        (("slates", "scan", "count"), '{"n":1}'),
        (("verify",), "all is well"),
    ],
)
def test_commands_that_only_read_work(made, command, answer):
    """As `tests/faults/test_read_only.py` has it of a file system that is mounted read-only."""
    ran = run_without_rights(made, *command)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert answer in ran.stdout


@pytest.mark.parametrize(
    "name", [".", "store.json", "progress", "epoch", "shards", "shards/shard-0000"]
)
@pytest.mark.parametrize("command", [("slates", "scan", "count"), ("verify",), ("vacuum",)])
def test_what_must_not_be_read_is_named(made, name, command):
    """The error says which file it is and to give the right, not that it is missing or damaged."""
    (made.path / name).chmod(0)
    ran = run_as_owner(made, *command)
    (made.path / name).chmod(stat.S_IRWXU)
    said = ran.stdout + ran.stderr
    if ran.returncode == 0:  # it did not need the file
        assert command != ("verify",)
        return
    assert ran.returncode == 1
    assert "Traceback" not in said
    assert "Permission denied" in said
    assert "missing" not in said
    assert "restore" not in said


def test_not_beside_its_application(made):
    """LMDB's readers must write a lock for that. The error says what to do."""
    hold(made.path)
    assert "its application runs" in read(made)
    verified = run_without_rights(made, "verify")
    assert (verified.returncode, verified.stdout) == (1, "")
    assert "its application runs" in verified.stderr


def test_a_store_that_is_just_being_made_has_no_slate(tmp_path: Path) -> None:
    """Its facts are there before the folder of its shards: that is no lack of rights."""
    Home.make(tmp_path / "store", "shop", 2, {"count": "dict"}).shards.rmdir()
    hold(tmp_path / "store")
    with SlateReader(tmp_path / "store") as reader:
        assert reader.get("count", "a") is None
