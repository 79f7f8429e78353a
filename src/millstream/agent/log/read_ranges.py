"""Finds what was read earlier in the files of a log: a file's copy, or the range of two positions.

When a file is copied and truncated, the bytes that were read of it are in the copy, which has
another inode. So a mark is looked up by the bytes that were read there, as after a restart.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from millstream.agent.log.log_file_list import id_at
from millstream.agent.log.log_files import LogFile, Mark

Place = tuple[LogFile, int, int]
"""A file, and the byte range in it."""


def places(files: Iterable[LogFile], start: Sequence[Mark], end: Sequence[Mark]) -> Iterator[Place]:
    """Locates the byte ranges between two positions, in order.

    Raises FileNotFoundError if it is not there any more.
    """
    known = {file.id: file for file in files}
    same = {(mark.id, mark.offset, mark.tail) for mark in start}
    for mark in end:
        if not mark.offset or (mark.id, mark.offset, mark.tail) in same:
            continue
        file = _holder(known, mark)
        if file is None:
            raise FileNotFoundError(f"{mark.name} is gone, or was truncated")
        before = [
            begin.offset
            for begin in start
            if 0 < begin.offset <= mark.offset and _holder(known, begin) is file
        ]
        yield file, max(before, default=0), mark.offset


def copy_among(
    paths: Iterable[Path], mark: Mark, known: Mapping[str, LogFile], not_this: str
) -> LogFile | None:
    """Returns the first of these files that has the bytes before a mark, opened at the mark.

    A file in `known`, which is followed already, is returned only if nothing was read up to the
    mark: then the copy is read as a file like any other.
    """
    for path in paths:
        file_id = id_at(path)
        if file_id == not_this:
            continue
        if file_id in known:
            if not mark.offset and known[file_id].is_at(mark):
                return known[file_id]
            continue
        try:
            file = LogFile(path, mark.offset)
        except OSError:
            continue
        if file.id == file_id and file.is_at(mark):
            return file
        file.close()
    return None


def _holder(files: dict[str, LogFile], mark: Mark) -> LogFile | None:
    """Returns the file with the bytes before a mark: the marked file itself, or else a copy."""
    own = files.get(mark.id)
    if own is not None and own.was_at(mark):
        return own
    return next((file for file in files.values() if file.was_at(mark)), None)
