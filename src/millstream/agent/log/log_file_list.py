"""Lists the files of a log: those that its patterns name, and those beside a file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from glob import glob
from pathlib import Path

from millstream.agent.log.log_files import id_of

PACKED = (".gz", ".bz2", ".xz")
"""Endings of compressed files that can be read (`packed_files`)."""
LEFT_ALONE = (".zst", ".lz4", ".zip")
"""Endings of compressed files that cannot be read."""
COMPRESSED = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ\x00", b"\x28\xb5\x2f\xfd", b"PK\x03\x04")
"""The first bytes of compressed files, which show what they are even without the ending. Such a
file has no lines to read. If it gets its ending when it is complete, it is looked at again."""


class Listing:
    """The files that patterns name, by their ids: see `log_files.id_of`."""

    def __init__(self, patterns: Sequence[str]) -> None:
        self._patterns = patterns
        self._last: dict[str, Path] = {}
        self.left_alone: set[str] = set()
        """Names of compressed files that cannot be read, or whose names do not show that they are
        compressed."""
        self.packed: dict[str, Path] = {}
        """Compressed files that can be read, as of the last listing."""

    def found(self) -> dict[str, Path]:
        """Returns the files that are there now, without compressed ones.

        While a rotation renames files, a list may lack one of them, which would then seem to be
        gone, and later to be new. So the listing is repeated until two in a row are equal.
        """
        while (listed := self._listed()) != self._last:
            self._last = listed
        return dict(listed)

    def _listed(self) -> dict[str, Path]:
        plain_files: dict[str, Path] = {}
        self.packed = {}
        globs = (glob(pattern, recursive=True) for pattern in self._patterns)
        for name in sorted({name for names in globs for name in names}):
            if name.endswith(LEFT_ALONE):
                self.left_alone.add(name)
                continue
            try:
                stat = os.stat(name)
            except OSError:
                continue  # it was removed since the listing
            if os.path.isfile(name):
                files = self.packed if name.endswith(PACKED) else plain_files
                files.setdefault(id_of(stat), Path(name))
        return plain_files


def beside(name: str) -> list[Path]:
    """Returns the files in the directory that a file was in."""
    try:
        with os.scandir(Path(name).parent) as entries:
            return [Path(entry.path) for entry in entries if entry.is_file()]
    except OSError:
        return []


def id_at(path: Path) -> str:
    """Returns the id of the file at a path; empty if there is none."""
    try:
        return id_of(os.stat(path))
    except OSError:
        return ""
