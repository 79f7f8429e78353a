"""Watches a directory for new files.

DESIGN
------
The tree is listed with `os.scandir`, and `stat` is called only for a file whose path is new. While
nothing changes, a directory is not listed; only its own stamp is read. A stamp is only as fine as
the file system's clock (some milliseconds on ext4, two seconds on FAT), so an unchanged stamp
proves nothing by itself: a file may arrive within the same tick, after the listing. Hence a listing
counts as *settled* only when the stamp had been seen, unchanged, for `SETTLE_SECONDS` of our own
clock before it began: a later arrival then falls into a later tick, and changes the stamp. Every
`RELIST_SECONDS` the directory is listed anyway, for file systems that keep no stamps.

Names that begin with `.` or `_` or end with `.tmp` are skipped, and empty files until they have
content. Links to files are followed; links to directories below the top are not (a warning).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from millstream.errors import InputError
from millstream.model.path import is_unicode

SETTLE_SECONDS = 3.0
RELIST_SECONDS = 60.0
_LINK = "is a link to a directory, and those are not followed; move the files here"
_NAME = "must have a name in UTF-8; it is skipped until it is renamed"


class NewFile(NamedTuple):
    """A new file. The order of the fields is the order of discovery: by time, then path."""

    mtime_ns: int
    path: str
    size: int


@dataclass(slots=True)
class _DirectoryState:
    """The state of one directory at the last look."""

    stamp: tuple[int, ...]
    since: float
    listed: float = 0.0
    settled: bool = False
    directories: list[str] = field(default_factory=list)


class Watched:
    """A directory with everything below it. `monotonic` returns seconds."""

    def __init__(self, directory: str, monotonic: Callable[[], float]) -> None:
        self.directory = os.path.abspath(directory)
        self._monotonic = monotonic
        self._seen: dict[str, _DirectoryState] = {}
        self._warned: set[str] = set()

    @property
    def directories(self) -> list[str]:
        """The directories that were visited and still exist, as far as is known."""
        return list(self._seen)

    def look(self, known: Container[str]) -> tuple[list[NewFile], list[str]]:
        """Returns the files that are not `known`, in order, and warnings not given before."""
        files: list[NewFile] = []
        warnings: list[str] = []
        pending = [self.directory]
        while pending:
            path = pending.pop()
            try:
                pending.extend(self._visit(path, known, files, warnings))
            except OSError as error:
                self._seen.pop(path, None)
                if path == self.directory or not isinstance(error, FileNotFoundError):
                    raise _unusable(path, error) from None
        return sorted(files), warnings

    def _visit(
        self, path: str, known: Container[str], files: list[NewFile], warnings: list[str]
    ) -> list[str]:
        """Adds the new files of one directory to `files`; returns the directories in it."""
        now = self._monotonic()
        stamp = _stamp(path)
        seen = self._seen.get(path)
        if seen is None or seen.stamp != stamp:
            seen = self._seen[path] = _DirectoryState(stamp, now)
        if seen.settled and now - seen.listed < RELIST_SECONDS:
            return seen.directories
        seen.directories = []
        waiting = False
        for entry in self._entries(path, known, seen.directories, warnings):
            try:
                file = entry.stat()
            except FileNotFoundError:
                continue  # already deleted: it was never taken, so nothing is lost
            if file.st_size:
                files.append(NewFile(file.st_mtime_ns, entry.path, file.st_size))
            else:
                waiting = True  # for content, which does not change the directory's stamp
        seen.listed = now
        seen.settled = not waiting and now - seen.since >= SETTLE_SECONDS
        return seen.directories

    def _entries(
        self, path: str, known: Container[str], directories: list[str], warnings: list[str]
    ) -> Iterator[os.DirEntry[str]]:
        with os.scandir(path) as entries:
            for entry in entries:
                if entry.path in known or entry.name[0] in "._" or entry.name.endswith(".tmp"):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    directories.append(entry.path)
                elif not entry.is_file():
                    if entry.is_dir():
                        self._warn(entry.path, _LINK, warnings)
                elif not is_unicode(entry.name):
                    self._warn(entry.path, _NAME, warnings)
                else:
                    yield entry

    def _warn(self, path: str, reason: str, warnings: list[str]) -> None:
        if path not in self._warned:
            self._warned.add(path)
            warnings.append(f"{os.fsencode(path).decode('utf-8', 'replace')} {reason}")


def _stamp(path: str) -> tuple[int, ...]:
    """Returns values that change when a name is added to a directory in a later clock tick."""
    stat = os.stat(path)
    return (stat.st_dev, stat.st_ino, stat.st_mtime_ns, stat.st_ctime_ns)


def _unusable(path: str, error: OSError) -> InputError:
    if isinstance(error, FileNotFoundError):
        problem = "it does not exist; create it (mkdir -p), or correct the address"
    elif isinstance(error, NotADirectoryError):
        problem = f"it is a file; name the directory that holds it: {os.path.dirname(path)}"
    else:
        problem = f"it cannot be listed: {error.strerror}; give the right to read it"
    return InputError(f"directory {path}: a source reads the files of a directory; {problem}")
