"""How far an action is: small files with checksums, for each action.

STORE/actions/NAME         the position, on disk when it is written, replaced whole
STORE/actions/.NAME.now    the position since, overwritten in place and not forced to disk: a killed
                           process leaves it, a power cut may not
STORE/actions/NAME+retry   up to which dead letter they are to be carried out again; the command's

The newer of the first two counts; a damaged `.now` is as none. No name of a stream has a `+` or
begins with a dot, so that they cannot meet.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from millstream.durable import (
    read_record,
    sync,
    with_checksum,
    without_checksum,
    write_record,
)
from millstream.errors import StoreError

RETRY = "+retry"


class Trying(msgspec.Struct, frozen=True):
    """A record that was tried and is to be tried again."""

    id: str
    tries: int
    since: int
    """When it was first tried, in microseconds."""
    last: int
    """When it was last tried."""
    spent: float
    """Seconds of its tries and of the pauses between them."""
    pause: float
    """Seconds from the last try to the next."""
    error: str


class Position(msgspec.Struct, frozen=True):
    """What is settled, carried out or given up, and what is being tried."""

    record: int
    """The next record of the action's log: all before it are settled."""
    done: int = 0
    failed: int = 0
    """Dead letters, of all time."""
    missed: int = 0
    """Records that were gone from the log before they could be carried out."""
    retried: int = 0
    """The next dead letter to put back: those before it were, and are settled, as far as asked."""
    trying: Trying | None = None
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
            raise _refused(folder_of(store), error) from error

    def write(self, position: Position) -> None:
        line = with_checksum(msgspec.json.encode(position))
        try:
            os.pwrite(self._file, line, 0)
        except OSError:
            pass  # the position is on disk, if an older one: more would be repeated

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
        self._file = -1


def _noted(store: Path, action: str) -> Position | None:
    """What was noted last; a shorter line leaves the end of a longer one behind it."""
    try:
        line = _note_of(store, action).read_bytes().partition(b"\n")[0]
        return msgspec.json.decode(without_checksum(line), type=Position)
    except (OSError, ValueError, msgspec.MsgspecError):
        return None


class _Retry(msgspec.Struct):
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
        raise _refused(folder, error) from error


def _refused(folder: Path, error: OSError) -> StoreError:
    return StoreError(
        f"{folder}: cannot be written: {error.strerror or error}; make room or give the right to "
        "write there, and start again"
    )


def known(store: Path) -> list[str]:
    """The actions that a store has ever had, by name."""
    folder = folder_of(store)
    names = (path.name for path in folder.iterdir()) if folder.is_dir() else ()
    return sorted(name for name in names if not name.startswith(".") and "+" not in name)


def read_position(store: Path, action: str) -> Position | None:
    """How far the action is; None if it was never started."""
    path = folder_of(store) / action
    try:
        data = read_record(path)
        if data is None:
            return None
        position = msgspec.json.decode(data, type=Position)
        return max(position, _noted(store, action) or position, key=_settled)
    except (StoreError, msgspec.MsgspecError) as error:
        raise StoreError(
            f"{path}: the record of how far action {action!r} is, is damaged ({error}). Restore it "
            "from a copy of the store; or delete it: the action then goes on with what is asked "
            "from now on, and what waits in its log is not carried out"
        ) from None


def write_position(store: Path, action: str, position: Position) -> None:
    """On disk when this returns."""
    write_record(folder_of(store) / action, msgspec.json.encode(position))


def retry_until(store: Path, action: str) -> int:
    """The dead letters before this number are to be carried out again."""
    path = folder_of(store) / f"{action}{RETRY}"
    try:
        data = read_record(path)
        return 0 if data is None else msgspec.json.decode(data, type=_Retry).until
    except (StoreError, msgspec.MsgspecError) as error:
        raise StoreError(
            f"{path}: a request to carry out dead letters again is damaged ({error}); delete the "
            f"file, and ask again: millstream actions retry {action}"
        ) from None


def ask_retry(store: Path, action: str, until: int) -> None:
    """Ask for it, durably; whoever runs the application sees it."""
    make_folder(store)
    write_record(folder_of(store) / f"{action}{RETRY}", msgspec.json.encode(_Retry(until)))
