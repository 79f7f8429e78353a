"""An action's position: small files with checksums, for each action.

    STORE/actions/NAME         the position, on disk when it is written, replaced whole
    STORE/actions/.NAME.now    the position since, overwritten in place and not forced to disk: it
                               survives a killed process, but perhaps not a power cut
    STORE/actions/NAME+retry   dead letters up to this number are carried out again; written by the
                               command

The newer of the first two counts; a damaged `.now` is ignored. No stream name contains a `+` or
begins with a dot, so the names cannot collide.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from millstream.durable import (
    read_record,
    sync,
    unwritable,
    with_checksum,
    without_checksum,
    write_record,
)
from millstream.errors import StoreError

RETRY = "+retry"


class PendingRetry(msgspec.Struct, frozen=True):
    """A record that failed and will be retried."""

    id: str
    tries: int
    since: int
    """The time of the first try, in microseconds."""
    last: int
    """The time of the last try."""
    spent: float
    """Seconds of its tries and of the pauses between them."""
    pause: float
    """Seconds from the last try to the next."""
    error: str


class Position(msgspec.Struct, frozen=True):
    """The records that are settled (carried out or given up), and the one that is being tried."""

    record: int
    """The next record of the action's log. All before it are settled."""
    done: int = 0
    failed: int = 0
    """All dead letters that there ever were."""
    missed: int = 0
    """Records that were removed from the log before they could be carried out."""
    retried: int = 0
    """The next dead letter to put back. Those before it, as far as they were put back, are
    settled."""
    trying: PendingRetry | None = None
    address: str = ""


def _settled(position: Position) -> int:
    return position.record + position.retried


class Note:
    """The file `.NAME.now`, held open."""

    def __init__(self, store: Path, action: str) -> None:
        flags = os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_CLOEXEC
        try:
            self._file = os.open(_note_of(store, action), flags, 0o644)
        except OSError as error:
            raise unwritable(folder_of(store), error) from error

    def write(self, position: Position) -> None:
        line = with_checksum(msgspec.json.encode(position))
        try:
            os.pwrite(self._file, line, 0)
        except OSError:
            pass  # an older position is on disk: a crash then repeats more

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
        self._file = -1


def _noted(store: Path, action: str) -> Position | None:
    """Reads the last note. Only the first line counts: the rest of a longer one may follow it."""
    try:
        line = _note_of(store, action).read_bytes().partition(b"\n")[0]
        return msgspec.json.decode(without_checksum(line), type=Position)
    except (OSError, ValueError, msgspec.MsgspecError):
        return None


class Retry(msgspec.Struct):
    """A request to carry dead letters out again."""

    until: int


def folder_of(store: Path) -> Path:
    return store / "actions"


def _note_of(store: Path, action: str) -> Path:
    return folder_of(store) / f".{action}.now"


def make_folder(store: Path) -> None:
    folder = folder_of(store)
    try:
        if not folder.is_dir():
            folder.mkdir()
            sync(store)
    except OSError as error:
        raise unwritable(folder, error) from error


def known(store: Path) -> list[str]:
    """Returns the names of all actions that a store has ever had."""
    folder = folder_of(store)
    names = (path.name for path in folder.iterdir()) if folder.is_dir() else ()
    return sorted(name for name in names if not name.startswith(".") and "+" not in name)


def read_position(store: Path, action: str) -> Position | None:
    """Returns the position of an action; None if it was never started."""
    path = folder_of(store) / action
    try:
        data = read_record(path)
        if data is None:
            return None
        position = msgspec.json.decode(data, type=Position)
        return max(position, _noted(store, action) or position, key=_settled)
    except (StoreError, msgspec.MsgspecError) as error:
        raise StoreError(
            f"{path}: the record of the position of action {action!r} is damaged ({error}). "
            "Restore it from a copy of the store; or delete it: the action then continues with new "
            "events, and those that wait in its log are not carried out"
        ) from None


def write_position(store: Path, action: str, position: Position) -> None:
    """Writes the position. It is on disk when this returns."""
    write_record(folder_of(store) / action, msgspec.json.encode(position))


def retry_until(store: Path, action: str) -> int:
    """Returns the number before which dead letters are to be carried out again."""
    path = folder_of(store) / f"{action}{RETRY}"
    try:
        data = read_record(path)
        return 0 if data is None else msgspec.json.decode(data, type=Retry).until
    except (StoreError, msgspec.MsgspecError) as error:
        raise StoreError(
            f"{path}: a request to carry out dead letters again is damaged ({error}); delete the "
            f"file, and ask again: millstream actions retry {action}"
        ) from None


def ask_retry(store: Path, action: str, until: int) -> None:
    """Requests a retry durably. The running application, or the next run, finds the request."""
    make_folder(store)
    write_record(folder_of(store) / f"{action}{RETRY}", msgspec.json.encode(Retry(until)))


class ActionRecords:
    """The records of a run's actions, in files of this machine."""

    sync_seconds = 0.1
    """The longest time for which a new position need not be durable, if records are carried out one
    by one."""

    def __init__(self, store: Path) -> None:
        self._store = store

    def read_position(self, action: str) -> Position | None:
        return read_position(self._store, action)

    def write_position(self, action: str, position: Position) -> None:
        """Writes the position. It is durable when this returns."""
        write_position(self._store, action, position)

    def retry_until(self, action: str) -> int:
        return retry_until(self._store, action)
