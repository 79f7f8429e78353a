"""The numbers of the letters that were retried, for a process that follows them.

Reads the log of retried letters once, and from then on only what was appended. `update` may run in
a thread beside the readers.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

from millstream.errors import LogError
from millstream.log.reader import NOWHERE, LogReader


class RetriedNumbers:
    """The numbers of the retried letters of a store, by kind."""

    def __init__(self, log: Path) -> None:
        """`log` is the folder of the log of retried letters; it need not exist."""
        self._log = log
        self._numbers: dict[str, set[int]] = {}
        self._at = list(NOWHERE)
        self._updating = threading.Lock()
        self._guard = threading.Lock()

    def update(self) -> None:
        """Reads what was appended since; keeps what it has if the log cannot be read."""
        with self._updating:
            try:
                self._read()
            except (LogError, OSError):
                self._at = list(NOWHERE)  # the log may have been replaced: read it from the start

    def among(self, kind: str, first: int, stop: int) -> list[int]:
        """Returns the numbers from `first` up to `stop`, exclusive, that were retried."""
        with self._guard:
            numbers = self._numbers.get(kind, set())
            if stop - first < len(numbers):
                return [number for number in range(first, stop) if number in numbers]
            return sorted(number for number in numbers if first <= number < stop)

    def _read(self) -> None:
        with closing(LogReader(self._log)) as reader:
            begin = max(self._at, reader.start)
            for block in reader.blocks(begin[0], reader.end[0]):
                self._add(tag.tag for tag in block.tags)
                self._at = [block.next_offset, block.first + block.count]

    def _add(self, tags: Iterable[str]) -> None:
        with self._guard:
            for tag in tags:
                kind, _, number = tag.partition(":")
                if number.isdigit():  # not so for a diverted event: its function's name comes first
                    self._numbers.setdefault(kind, set()).add(int(number))
