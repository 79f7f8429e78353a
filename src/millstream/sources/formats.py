"""File formats: how a file is cut into splits, and how a split is read.

DESIGN
------
A format measures a file in its own *units*, at least one a file: lines in bytes, Parquet in row
groups, CSV, a JSON array and anything compressed as one. A position in a list of files is then
`(files wholly taken, units taken of the next file)`, and a batch may end in the middle of a large
file. A `Split` is a range of one file's units that one task reads; the splits of a file, however
it is cut, give each of its records exactly once.

What is wrong with a *record* is a `Bad` beside the good ones: it becomes a dead letter, and the
batch goes on. What is wrong with a whole file (truncated, corrupt) is one `Bad` with line 0. Only a
file that is gone, cannot be opened or has shrunk raises InputError: it was promised to the batch,
and going on would lose its events without a word.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

from millstream.errors import InputError
from millstream.model.text_form import PLAIN_TEXT, TextForm
from millstream.sources.address import FORMATS, LOG, SQLITE
from millstream.sources.picked import Picked

CHUNK_RECORDS = 8192
"""How many records a chunk holds at most."""
SHOWN_CHARACTERS = 2000
"""How much of a bad line is kept."""


class Split(NamedTuple):
    """A range of a file's units. `stop` None: to the end of the file as it is when it is read."""

    path: str
    start: int
    stop: int | None


class Bad(NamedTuple):
    """A record that could not be read, or a whole file (line 0)."""

    line: int
    """The line in the file, or the row in a Parquet file, counted from 1; 0 for the whole file."""
    text: str
    error: str


def _no_lines() -> int:
    return 0


class Chunk(NamedTuple):
    """Some records of a split, in the order of the file."""

    records: list[Any]
    raw: list[bytes] | None
    """The JSON text of each record, where the file holds it."""
    bad: list[Bad]
    lines: list[int] | None
    """Each record's line, counted from 0 at the split's first; None: one after the other."""
    first: int = 0
    """The line of the first record, counted likewise, when `lines` is None."""
    before: Callable[[], int] = _no_lines
    """How many lines of the file come before the split: counted when it is first asked for."""
    stamps: list[int] | None = None
    """When each record came in, where that was written down."""
    picked: Picked | None = None
    """Instead of records: their keys and times, where no more was asked for."""
    whole: Callable[[], Chunk] | None = None
    """The records of a chunk that was picked from, after all."""

    def line_of(self, index: int) -> int:
        """The line in the file, counted from 1, where the record begins; the row in Parquet."""
        line = self.first + index if self.lines is None else self.lines[index]
        return self.before() + line + 1


class Format(Protocol):
    """A kind of file. `units` may look into the file; `splits` does not."""

    name: str
    look_back: int
    """Units that are likely to hold some records: how far to go back for a few."""

    def units(self, path: str, size: int) -> int:
        """The length of the file in the format's own unit, at least 1; OSError as `open` has."""

    def splits(
        self, path: str, size: int, units: int, start: int, stop: int, target_bytes: int
    ) -> list[Split]:
        """Units [start, stop) of a file of so many bytes and units, cut to about `target_bytes`."""

    def read(self, split: Split) -> Iterator[Chunk]:
        """The records of a split; InputError if the file is gone."""


def format_named(name: str, form: TextForm = PLAIN_TEXT) -> Format:
    """The format of that name; `form` is how its text is laid out, if it is text.

    A format's libraries are loaded only when it is asked for.
    """
    match FORMATS.get(name):
        case "json":
            from millstream.sources.json_lines import JsonLines

            return JsonLines()
        case "csv":
            from millstream.sources.csv_files import CsvFiles

            return CsvFiles(form)
        case "text":
            from millstream.sources.text_lines import TextLines

            return TextLines(form)
        case "parquet":
            from millstream.sources.parquet_files import ParquetFiles

            return ParquetFiles()
    files = sorted(set(FORMATS) - {LOG, SQLITE})
    raise InputError(f"a file's format must be one of {', '.join(files)}; got {name!r}")


def is_gzip(path: str) -> bool:
    """Whether the file is compressed, by its name: then it cannot be split."""
    return path.endswith(".gz")


def cut_evenly(start: int, stop: int, parts: int) -> list[tuple[int, int]]:
    """The range as at most so many ranges of about the same length, none of them empty."""
    length = stop - start
    parts = max(1, min(parts, length))
    edges = [start + length * part // parts for part in range(parts + 1)]
    return list(pairwise(edges))


def shown(text: bytes | str) -> str:
    """What a dead letter keeps of a bad record: its first characters."""
    if isinstance(text, bytes):
        text = text[: 4 * SHOWN_CHARACTERS].decode("utf-8", "replace")
    return text[:SHOWN_CHARACTERS]


def unreadable(path: str, error: OSError) -> InputError:
    """A file that was discovered and cannot be opened now."""
    if isinstance(error, FileNotFoundError):
        return InputError(
            f"file {path}: it was taken into a batch and must still be there, and it is gone; "
            "put it back and start again, or give its events up with an empty file in its place"
        )
    what = error.strerror or os.path.basename(str(error)) or type(error).__name__
    return InputError(
        f"file {path}: it was taken into a batch and must be readable; got: {what}; "
        "make it readable and start again"
    )


def given_up(taken: str) -> Bad:
    """The whole of a file that has been emptied since it was discovered."""
    error = (
        f"the file must be as it was when it was taken, with {taken}; "
        "it is empty now, and its events are given up"
    )
    return Bad(0, "", error)


def shrunk(path: str, taken: str, now: str) -> InputError:
    """A file that has become shorter since it was discovered."""
    return InputError(
        f"file {path}: it must be as it was when it was taken into a batch, with {taken}; it has "
        f"{now} now; put it back and start again, or give its events up with an empty file in its "
        "place"
    )
