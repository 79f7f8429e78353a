"""File formats: cutting a file into splits, and reading a split.

DESIGN
------
A format measures a file in its own *units*, at least one per file: files of lines in bytes, Parquet
in row groups; CSV, a JSON array and any compressed file are one unit. A position in a list of files
is then `(files wholly taken, units taken of the next file)`, and a batch may end in the middle of a
large file. An `InputSplit` is a range of one file's units that one task reads; the splits of a
file, however it is cut, yield each of its records exactly once.

A wrong *record* is a `Bad` beside the good ones: it becomes a dead letter, and the batch continues.
A wrong file (truncated, corrupt) is one `Bad` with line 0. Only a file that is gone, cannot be
opened or has shrunk raises InputError: its events belong to the batch, and would be lost silently
if the batch continued.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import IO, Any, NamedTuple, Protocol

from millstream.columnar.picked_fields import Picked
from millstream.errors import InputError
from millstream.model.letter_records import Bad

CHUNK_RECORDS = 8192
"""The maximum number of records of a chunk."""


class InputSplit(NamedTuple):
    """A range of a file's units. `stop` None: to the end that the file has when it is read."""

    path: str
    start: int
    stop: int | None


def _no_lines() -> int:
    return 0


class Chunk(NamedTuple):
    """Some records of a split, in the order of the file."""

    records: list[Any]
    raw: list[bytes] | None
    """The JSON text of each record, if the file has it."""
    bad: list[Bad]
    lines: list[int] | None
    """Each record's line, counted from 0 at the split's first; None: consecutive lines."""
    first: int = 0
    """The line of the first record, counted likewise, when `lines` is None."""
    before: Callable[[], int] = _no_lines
    """Returns the number of lines of the file before the split; counted on the first call."""
    stamps: list[int] | None = None
    """The time at which each record arrived, if it was recorded."""
    picked: Picked | None = None
    """Keys and times instead of records, if no more was requested."""
    whole: Callable[[], Chunk] | None = None
    """Returns the records of a chunk that has only `picked`."""
    keys: list[str] | None = None
    """Each record's key, if it is not in the record."""

    def line_of(self, index: int) -> int:
        """Returns the line at which a record begins, counted from 1; the row in Parquet."""
        line = self.first + index if self.lines is None else self.lines[index]
        return self.before() + line + 1


class Format(Protocol):
    """A kind of file. `units` may read the file; `splits` does not."""

    name: str
    look_back: int
    """How many units to go back in a file to find a few records."""

    def units(self, path: str, size: int) -> int:
        """Returns the length of the file in units, at least 1; raises OSError as `open` does."""

    def splits(
        self, path: str, size: int, units: int, start: int, stop: int, target_bytes: int
    ) -> list[InputSplit]:
        """Cuts the units [start, stop) of a file with `size` bytes and `units` units into splits of
        about `target_bytes`."""

    def read(self, split: InputSplit) -> Iterator[Chunk]:
        """Yields the records of a split; InputError if the file is gone."""


def is_gzip(path: str) -> bool:
    """True if the file's name says that it is compressed, and so cannot be split."""
    return path.endswith(".gz")


def cut_evenly(start: int, stop: int, parts: int) -> list[tuple[int, int]]:
    """Cuts a range into at most `parts` ranges of about the same length, none of them empty."""
    length = stop - start
    parts = max(1, min(parts, length))
    edges = [start + length * part // parts for part in range(parts + 1)]
    return list(pairwise(edges))


def unreadable(path: str, error: OSError) -> InputError:
    """Returns the error for a file that was discovered and cannot be opened now."""
    if isinstance(error, FileNotFoundError):
        return InputError(
            f"file {path}: it was taken into a batch and must still be there, but is gone; put it "
            "back and start again, or give up its events: put an empty file in its place"
        )
    reason = error.strerror or os.path.basename(str(error)) or type(error).__name__
    return InputError(
        f"file {path}: it was taken into a batch and must be readable; got: {reason}; "
        "make it readable and start again"
    )


def opened(path: str, buffering: int = -1) -> IO[bytes]:
    """Opens a file that was discovered."""
    try:
        return open(path, "rb", buffering=buffering)
    except OSError as error:
        raise unreadable(path, error) from None


def given_up(taken: str) -> Bad:
    """Returns the `Bad` of a file that has been emptied since it was discovered."""
    error = (
        f"the file must be as it was when it was taken, with {taken}; "
        "it is empty now, and its events are given up"
    )
    return Bad(0, "", error)


def shrunk(path: str, taken: str, now: str) -> InputError:
    """Returns the error for a file that has become shorter since it was discovered."""
    return InputError(
        f"file {path}: it must be as it was when it was taken into a batch, with {taken}; it has "
        f"{now} now; put it back and start again, or give up its events: put an empty file in its "
        "place"
    )


def line_splits(
    path: str, size: int, units: int, start: int, stop: int, target_bytes: int
) -> list[InputSplit]:
    """Cuts a file of lines, in units of bytes, as `Format.splits` does. A file with fewer units
    than bytes cannot be cut."""
    if is_gzip(path) or units < size:
        return [InputSplit(path, 0, None)]
    parts = -(-(stop - start) // max(1, target_bytes))
    return [InputSplit(path, *cut) for cut in cut_evenly(start, stop, parts)]
