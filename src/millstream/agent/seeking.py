"""Where in the files of a log that is which was read between two positions.

A file that was copied and cut off since is another one by its number: what was read of it is in the
copy by now. So a mark is looked up by what was read there, as after a start.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from millstream.agent.files import LogFile, Mark

Place = tuple[LogFile, int, int]
"""A file, and from where to where."""


def places(
    files: Iterable[LogFile], start: Sequence[dict[str, Any]], end: Sequence[dict[str, Any]]
) -> Iterator[Place]:
    """What lies between two positions, in order; FileNotFoundError if it is not there any more."""
    known = {file.id: file for file in files}
    begins = [Mark(**mark) for mark in start]
    same = {(mark.id, mark.offset, mark.tail) for mark in begins}
    for mark in (Mark(**one) for one in end):
        if not mark.offset or (mark.id, mark.offset, mark.tail) in same:
            continue
        file = _holder(known, mark)
        if file is None:
            raise FileNotFoundError(f"{mark.name} is gone, or was cut off")
        before = [
            one.offset
            for one in begins
            if 0 < one.offset <= mark.offset and _holder(known, one) is file
        ]
        yield file, max(before, default=0), mark.offset


def _holder(files: dict[str, LogFile], mark: Mark) -> LogFile | None:
    """The file that has what was read by a mark: itself, or else a copy."""
    own = files.get(mark.id)
    if own is not None and own.was_at(mark):
        return own
    return next((file for file in files.values() if file.was_at(mark)), None)
