"""Keeps ended panes on disk until the root has taken them (iMR, 4.3).

DESIGN
------
A *group* holds entries that were put in together: one file, written whole, checksummed and synced
before `put` returns, and sent as one request. A group also holds the position in the log after its
messages, so the newest group is the restart point: everything before it is in a group or was taken
by the root, and nothing after it was ever put in. A file is called `NUMBER.panes` while it waits.
When the root has taken it, it is renamed to `NUMBER.sent`. The rename needs no sync: after a crash
the file has one name or the other, and a group that is sent twice counts once. The last sent file
is kept for its restart point.

A file whose checksum is wrong is moved to `damaged`. Its panes have to be made again, so the
restart point goes back to the group before it. That is recorded in a group without messages before
the file is moved. Groups after the damaged one are still sent, and their panes are made once more:
the root ignores panes that it has.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Condition
from typing import Any

import msgspec

from millstream.durable import read_checked, sync, with_checksum, write_synced
from millstream.errors import StoreError

Say = Callable[[str], None]
"""Shows a sentence to the user who runs the agent."""
GROUP_BYTES = 4 << 20
"""The maximum number of bytes of messages in one file, and so in one request, unless one message is
larger."""
_NAME = re.compile(r"(\d{12})\.(panes|sent)")


@dataclass(frozen=True, slots=True)
class OutboxEntry:
    """A message, and the restart point after it."""

    job: str
    node: str
    pane: int
    until: int
    body: bytes
    """JSON of the message in one line, without a newline: see `bodies.fitted`."""
    after: Any
    """JSON: position and counters. An agent that resumes there does not make the pane again. A
    group keeps only that of its last entry."""


@dataclass(frozen=True, slots=True)
class Group:
    """A file of entries."""

    number: int
    size: int


class _FileHead(msgspec.Struct):
    """The first line of a file; the bodies follow, one per line."""

    job: str
    node: str
    after: Any
    panes: list[tuple[int, int]]


class Outbox:
    """The groups that wait to be sent. One thread puts entries in, another takes groups out."""

    def __init__(self, folder: Path, most_bytes: int, say: Say) -> None:
        self._folder, self._most, self._say = folder, most_bytes, say
        self._changed = Condition()
        self._waiting: dict[int, Group] = {}
        self._sent: set[int] = set()
        self._bytes = 0
        self._puts = 0
        self._next = 1
        self._after: Any = None
        folder.mkdir(parents=True, exist_ok=True)
        self._load()

    @property
    def bytes(self) -> int:
        return self._bytes

    @property
    def full(self) -> bool:
        """True if it has reached its limit: put nothing in until it has drained."""
        return self._bytes >= max(1, self._most)

    def newest(self) -> Any:
        """Returns the restart point: the `after` of the newest entry ever put in; None without one.

        It is known even if that entry was sent and removed.
        """
        return self._after

    def put(self, entries: Sequence[OutboxEntry]) -> None:
        """Write entries to disk: all of them, or none if it raises StoreError."""
        parts = _cut(entries)
        files = [(self._next + index, _written(part)) for index, part in enumerate(parts)]
        if not files:
            return
        paths = [self._path(number) for number, _ in files]
        fresh = [path.with_suffix(".tmp") for path in paths]
        try:
            for path, (_, data) in zip(fresh, files, strict=True):
                write_synced(path, data)
            for old, new in zip(fresh, paths, strict=True):
                os.replace(old, new)
            sync(self._folder)
        except OSError as error:
            for path in (*fresh, *paths):
                path.unlink(missing_ok=True)
            raise StoreError(
                f"{self._folder}: a pane cannot be kept: {error.strerror or error}; make room there"
            ) from error
        with self._changed:
            for number, data in files:
                self._add(Group(number, len(data)))
            self._after = entries[-1].after
            self._puts += 1
            self._changed.notify_all()

    def groups(self) -> list[Group]:
        """Returns the groups that wait, oldest first."""
        with self._changed:
            return list(self._waiting.values())

    def read(self, group: Group) -> list[OutboxEntry]:
        """Returns the entries of a waiting group. Raises StoreError if its file was damaged
        meanwhile."""
        path = self._path(group.number)
        try:
            return _read(path)
        except (OSError, ValueError, msgspec.DecodeError) as error:
            raise StoreError(
                f"{path}: {error}; start the agent again: it makes these panes once more"
            ) from error

    def entries(self) -> Iterator[OutboxEntry]:
        """Yields all entries that wait, in order."""
        for group in self.groups():
            yield from self.read(group)

    @property
    def panes(self) -> int:
        """The number of panes that wait; each pane of an empty run counts. Reads the files."""
        return sum(entry.until - entry.pane for entry in self.entries())

    def remove(self, group: Group) -> None:
        """Remove a group that was taken, so that it is not sent again."""
        path = self._path(group.number)
        try:
            os.replace(path, self._path(group.number, "sent"))
        except OSError as error:
            raise StoreError(
                f"{path}: cannot be renamed: {error.strerror or error}; the folder must belong to "
                "this agent alone"
            ) from error
        with self._changed:
            del self._waiting[group.number]
            self._bytes -= group.size
            self._sent.add(group.number)
            lowest = min(self._waiting, default=self._next)
            behind = sorted(number for number in self._sent if number < lowest)
            self._sent.difference_update(behind[:-1])
            self._changed.notify_all()
        for number in behind[:-1]:
            self._path(number, "sent").unlink(missing_ok=True)

    def wait(self, seconds: float, seen: int = -1) -> int:
        """Wait for a put after the call that returned `seen`. Returns the number of puts so far."""
        with self._changed:
            if self._puts == seen:
                self._changed.wait(seconds)
            return self._puts

    def wait_empty(self, seconds: float) -> bool:
        """Wait until all groups were taken. True if that is so within `seconds`."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._waiting, seconds)

    def wake(self) -> None:
        """Wake all threads that wait here."""
        with self._changed:
            self._puts += 1
            self._changed.notify_all()

    def _add(self, group: Group) -> None:
        self._waiting[group.number] = group
        self._bytes += group.size
        self._next = group.number + 1

    def _path(self, number: int, kind: str = "panes") -> Path:
        return self._folder / f"{number:012}.{kind}"

    def _load(self) -> None:
        """Load the groups that an earlier run has left."""
        for path in self._folder.glob("*.tmp"):
            path.unlink()
        intact: dict[int, Any] = {}
        damaged: dict[int, Path] = {}
        for path in sorted(self._folder.iterdir()):
            match = _NAME.fullmatch(path.name)
            if match is None:
                continue
            number = int(match[1])
            self._next = number + 1
            try:
                intact[number] = _head(read_checked(path)).after
            except (ValueError, msgspec.DecodeError):
                damaged[number] = path
            else:
                if match[2] == "panes":
                    self._add(Group(number, path.stat().st_size))
                else:
                    self._sent.add(number)
        if damaged:
            self._go_back(intact, damaged)
        elif intact:
            self._after = intact[max(intact)]

    def _go_back(self, intact: dict[int, Any], damaged: dict[int, Path]) -> None:
        """Move the restart point to before the first damaged group; see DESIGN."""
        before = [number for number in intact if number < min(damaged)]
        self._after = intact[max(before)] if before else None
        mark, self._next = self._next, self._next + 1
        fresh, path = self._folder / "restart.tmp", self._path(mark, "sent")
        write_synced(fresh, _joined(_FileHead("", "", self._after, []), []))
        os.replace(fresh, path)
        sync(self._folder)
        self._sent.add(mark)
        aside = self._folder / "damaged"
        aside.mkdir(exist_ok=True)
        for file in damaged.values():
            os.replace(file, aside / file.name)
            self._say(
                f"{file}: the file is damaged; it is in {aside} now, and its panes are made again "
                "from the log"
            )


def _cut(entries: Sequence[OutboxEntry]) -> list[list[OutboxEntry]]:
    """Splits entries into parts of at most GROUP_BYTES, or of one larger entry."""
    parts: list[list[OutboxEntry]] = []
    size = 0
    for entry in entries:
        size += len(entry.body) + 1
        if not parts or size > GROUP_BYTES:
            parts.append([])
            size = len(entry.body) + 1
        parts[-1].append(entry)
    return parts


def _written(entries: Sequence[OutboxEntry]) -> bytes:
    last = entries[-1]
    panes = [(entry.pane, entry.until) for entry in entries]
    return _joined(
        _FileHead(last.job, last.node, last.after, panes), [entry.body for entry in entries]
    )


def _joined(head: _FileHead, bodies: list[bytes]) -> bytes:
    return with_checksum(b"\n".join([msgspec.json.encode(head), *bodies]))


def _head(data: bytes) -> _FileHead:
    return msgspec.json.decode(data.partition(b"\n")[0], type=_FileHead)


def _read(path: Path) -> list[OutboxEntry]:
    data = read_checked(path)
    head = _head(data)
    bodies = data.split(b"\n")[1:]
    last = len(bodies) - 1
    return [
        OutboxEntry(head.job, head.node, pane, until, body, head.after if index == last else None)
        for index, ((pane, until), body) in enumerate(zip(head.panes, bodies, strict=True))
    ]
