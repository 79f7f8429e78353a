"""Checking whole shards in a child process, which a damaged page may end.

The child says what it found of one shard after the other. If it dies, the shard that it was at is
damaged, and another child goes on with the rest.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from millstream.errors import StoreError
from millstream.stores.environment import REPAIR
from millstream.stores.home import Home
from millstream.stores.shard_check import Checked
from millstream.stores.soft import read_committed


class ShardChecks:
    """Checks that run from now on; `results` waits for them."""

    def __init__(self, paths: Sequence[str]) -> None:
        self._paths = list(paths)
        self._child = _started(self._paths) if self._paths else None

    def results(self) -> list[Checked]:
        """What was found, shard by shard, in the order given."""
        found: list[Checked] = []
        while self._child is not None:
            said, _ = self._child.communicate()
            code = self._child.returncode
            found += map(msgspec.json.Decoder(Checked).decode, said.splitlines())
            self._child = None
            if len(found) < len(self._paths):
                found.append(Checked(self._paths[len(found)], findings=[_died(code)]))
                left = self._paths[len(found) :]
                self._child = _started(left) if left else None
        return found

    def stop(self) -> None:
        """End what still runs: nobody waits for it."""
        if self._child is not None:
            self._child.kill()
            self._child.communicate()
            self._child = None

    def __enter__(self) -> ShardChecks:
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()


def shard_folders(home: Home) -> tuple[list[str], list[str]]:
    """The folders of a store's shards: those that are there, and those that are missing.

    A driver makes all of them before its first batch; those of a layer as they are needed.
    """
    names = [f"shard-{number:04d}" for number in range(home.facts.shards)]
    folders = [str(home.shards / name) for name in names]
    there = [folder for folder in folders if _holds(folder)]
    missing = (
        [] if read_committed(home.path).batch < 0 else [one for one in folders if one not in there]
    )
    if home.soft is not None and home.soft.survives():
        layer = home.soft.folder(home.path)
        there += [str(layer / name) for name in names if _holds(layer / name)]
    return there, missing


def _holds(folder: str | os.PathLike[str]) -> bool:
    return os.path.exists(os.path.join(folder, "data.mdb"))


def start_checks(home: Home) -> ShardChecks:
    """Begin to check all shards of a store; StoreError if one is missing."""
    there, missing = shard_folders(home)
    if missing:
        raise StoreError(f"{missing[0]}: the shard is missing; {REPAIR}")
    return ShardChecks(there)


def finish_checks(checks: ShardChecks) -> list[Checked]:
    """Wait for the checks; StoreError names the first shard that is damaged, and the repair."""
    results = checks.results()
    for checked in results:
        if checked.findings:
            more = len(checked.findings) - 1
            also = f" (and {more} more: see `millstream verify`)" if more else ""
            raise StoreError(f"{checked.path}: {checked.findings[0]}{also}; {REPAIR}")
    return results


def _started(paths: Sequence[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        # -P: what lies in the user's directory is not imported.
        [sys.executable, "-P", "-m", "millstream.stores.shard_check", *map(str, map(Path, paths))],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        process_group=0,  # Ctrl-C is for this process
    )


def _died(code: int) -> str:
    try:
        how = signal.Signals(-code).name
    except ValueError:
        how = f"exit code {code}"
    return f"reading it ended the process ({how}): a page is damaged, or the file was cut short"
