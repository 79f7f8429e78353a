"""The state folder of an agent: its lock, its owner and its status.

agent.lock             held for as long as the agent runs
agent.json             the job and the node that the folder is for, and the size of its panes
outbox/                panes that the root does not have yet, and the restart point
stamps.jsonl           when records without a time were first seen
dead-letters.jsonl     lines that could not be read or mapped
status.json            the status, written about every second

The folder of an agent with several jobs has one such folder for each, `jobs/NAME`. A folder that
was used for a single job stays that job's.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import msgspec
from msgspec.structs import replace

from millstream.agent.job_status import JobStatus
from millstream.durable import read_record, write_record, write_unsynced
from millstream.errors import StoreError, StoreLocked
from millstream.model.duration import shown_duration
from millstream.windows.placed import PlacedJob


class StateOwner(msgspec.Struct, frozen=True):
    """`agent.json`: the job and the node that the folder is for, and the size of its panes."""

    job: str
    node: str
    axis: str = ""
    pane: int = 0

    def __str__(self) -> str:
        return f"job {self.job} node {self.node} axis {self.axis} pane {self.pane}"


class FolderLock:
    """A folder that this process alone uses."""

    def __init__(self, folder: Path) -> None:
        """Raises StoreLocked if another agent uses it, StoreError if it cannot be created."""
        try:
            folder.mkdir(parents=True, exist_ok=True)
            flags = os.O_CREAT | os.O_RDWR | os.O_CLOEXEC
            self._handle = os.open(folder / "agent.lock", flags, 0o644)
        except OSError as error:
            raise StoreError(
                f"{folder}: the agent's state cannot be kept there: {error.strerror or error}; "
                "name another folder with --state"
            ) from error
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(self._handle, 20, 0).decode(errors="replace") or "unknown"
            os.close(self._handle)
            raise StoreLocked(
                f"{folder}: another agent (process {holder}) uses this state; stop it first, or "
                "name another folder with --state"
            ) from None
        os.ftruncate(self._handle, 0)
        os.pwrite(self._handle, str(os.getpid()).encode(), 0)

    def close(self) -> None:
        os.close(self._handle)


class State:
    """The folder of a job, locked."""

    def __init__(self, folder: Path, placed: PlacedJob, node: str) -> None:
        """Raises StoreLocked if another agent uses it, StoreError if it belongs to another job or
        node."""
        self.folder = folder
        self._lock = FolderLock(folder)
        try:
            self._check(placed, node)
        except BaseException:
            self.close()
            raise

    def status(self, job_status: JobStatus) -> None:
        """Write the agent's status; a full disk is ignored."""
        try:
            write_unsynced(self.folder / "status.json", msgspec.json.encode(job_status))
        except StoreError:
            pass

    def close(self) -> None:
        self._lock.close()

    def _check(self, placed: PlacedJob, node: str) -> None:
        path, span = self.folder / "agent.json", placed.job.span
        mine = StateOwner(placed.name, node, span.axis, span.pane)
        known = read_record(path)
        if known is None:
            write_record(path, msgspec.json.encode(mine))
            return
        before = msgspec.json.decode(known, type=StateOwner)
        if before != mine:
            if replace(before, pane=0) == replace(mine, pane=0):
                panes = [_size(span.axis, size) for size in (before.pane, span.pane)]
                raise StoreError(
                    f"{self.folder}: the panes of job {placed.name!r} were {panes[0]} and are "
                    f"{panes[1]} now; if that is intended, give the root a new store (or the job a "
                    "new name) and this agent a new --state"
                )
            raise StoreError(
                f"{self.folder}: this state belongs to {before}, and the agent runs {mine}; "
                "name another folder with --state"
            )


def job_folder(state: Path, name: str) -> Path:
    """Returns the folder of one of several jobs: `jobs/NAME` in the agent's folder, or that folder
    itself if it was used for this job alone."""
    known = read_record(state / "agent.json")
    if known is not None and msgspec.json.decode(known, type=StateOwner).job == name:
        return state
    return state / "jobs" / name


def _size(axis: str, pane: int) -> str:
    return shown_duration(pane) if axis == "time" else f"{pane:,} {axis}"
