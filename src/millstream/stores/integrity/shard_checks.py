"""Checks whole shards in a child process, because a damaged page may end the process.

The child reports its findings shard by shard. If it dies, the shard that it was checking is
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
from millstream.stores.environment import REPAIR, explained, holds_data
from millstream.stores.home import Home
from millstream.stores.integrity.shard_check import CheckedShard
from millstream.stores.soft import read_committed


class ShardChecks:
    """Starts checking at once; `results` waits for the end."""

    def __init__(self, paths: Sequence[str]) -> None:
        self._paths = list(paths)
        self._child = _started(self._paths) if self._paths else None

    def results(self) -> list[CheckedShard]:
        """The results, shard by shard, in the order of the paths."""
        results: list[CheckedShard] = []
        while self._child is not None:
            output, _ = self._child.communicate()
            code = self._child.returncode
            results += map(msgspec.json.Decoder(CheckedShard).decode, output.splitlines())
            self._child = None
            if len(results) < len(self._paths):
                results.append(CheckedShard(self._paths[len(results)], findings=[_died(code)]))
                left = self._paths[len(results) :]
                self._child = _started(left) if left else None
        return results

    def stop(self) -> None:
        """Kill the child if it still runs: nobody waits for its results."""
        if self._child is not None:
            self._child.kill()
            self._child.communicate()
            self._child = None

    def __enter__(self) -> ShardChecks:
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()


def shard_folders(home: Home) -> tuple[list[str], list[str]]:
    """The folders of a store's shards: those that exist, and those that are missing.

    A driver creates all of them before its first batch, but those of a layer only when needed.
    """
    names = [f"shard-{number:04d}" for number in range(home.facts.shards)]
    folders = [str(home.shards / name) for name in names]
    existing = [folder for folder in folders if _holds(folder)]
    begun = read_committed(home.path).batch >= 0
    missing = [folder for folder in folders if folder not in existing] if begun else []
    if home.soft is not None and home.soft.survives():
        layer = home.soft.folder(home.path)
        existing += [str(layer / name) for name in names if _holds(layer / name)]
    return existing, missing


def _holds(folder: str | os.PathLike[str]) -> bool:
    with explained(str(folder), "cannot be checked"):
        return holds_data(str(folder))


def start_checks(home: Home) -> ShardChecks:
    """Start checking all shards of a store; StoreError if one is missing."""
    there, missing = shard_folders(home)
    if missing:
        raise StoreError(f"{missing[0]}: the shard is missing; {REPAIR}")
    return ShardChecks(there)


def finish_checks(checks: ShardChecks) -> list[CheckedShard]:
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
        # -P: do not import modules from the user's directory.
        [
            sys.executable,
            "-P",
            "-m",
            "millstream.stores.integrity.shard_check",
            *map(str, map(Path, paths)),
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        process_group=0,  # Ctrl-C must reach this process only
    )


def _died(code: int) -> str:
    try:
        how = signal.Signals(-code).name
    except ValueError:
        how = f"exit code {code}"
    return f"reading it ended the process ({how}): a page is damaged, or the file was cut short"
