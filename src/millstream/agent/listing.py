"""Which files a log has now: what its patterns name, and what lies beside a file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from glob import glob
from pathlib import Path

from millstream.agent.files import id_of

PACKED = (".gz", ".bz2", ".xz")
"""Endings of compressed files that can be read (`packed_files`)."""
LEFT_ALONE = (".zst", ".lz4", ".zip")


class Listing:
    """The files that patterns name, by what they are: see `files.id_of`."""

    def __init__(self, patterns: Sequence[str]) -> None:
        self._patterns = patterns
        self._last: dict[str, Path] = {}
        self.left_alone: set[str] = set()
        """Names of compressed files that cannot be read."""
        self.packed: dict[str, Path] = {}
        """Those that can, as of the last listing."""

    def found(self) -> dict[str, Path]:
        """The files that there are.

        While a rotation renames files, a list of them may lack one, which would be taken for gone
        and then for new. So a list that is another than the last one is made again until it stays.
        """
        while (found := self._listed()) != self._last:
            self._last = found
        return dict(found)

    def _listed(self) -> dict[str, Path]:
        found: dict[str, Path] = {}
        self.packed = {}
        for name in sorted({name for one in self._patterns for name in glob(one, recursive=True)}):
            if name.endswith(LEFT_ALONE):
                self.left_alone.add(name)
                continue
            try:
                stat = os.stat(name)
            except OSError:
                continue  # it went in between
            if os.path.isfile(name):
                files = self.packed if name.endswith(PACKED) else found
                files.setdefault(id_of(stat), Path(name))
        return found


def beside(name: str) -> list[Path]:
    """The files in the directory that a file was in."""
    try:
        with os.scandir(Path(name).parent) as entries:
            return [Path(one.path) for one in entries if one.is_file()]
    except OSError:
        return []


def id_at(path: Path) -> str:
    """What the file of a name is; nothing if there is none."""
    try:
        return id_of(os.stat(path))
    except OSError:
        return ""
