"""Writes a node's log, which grows and is rotated, and records the truth about every line.

Lines come in pieces that may end within a line. A rotation renames the file, as most programs do,
or copies and truncates it, as `copytruncate` of logrotate does; no rotated file is ever deleted.
"""

from __future__ import annotations

import json
import os
import shutil
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Literal

from millstream.windows.span import Axis, Span

KEYS = ("a", "b", "c", "d", "é")
BROKEN = (b"this is no record", b'{"key": "a"', b'{"key": "a", "second": %d}', b'{"key": "a", \xff')
"""Lines that cannot be parsed, or on which `map` fails."""
A_SECOND = 25
"""Lines for each second of the axis `sequence`."""
MOST_ROTATIONS = 12
"""Each rotation renumbers all rotated files: more would take longer than in real life."""
Rotation = Literal["rename", "copy"]


@dataclass
class Truth:
    """The true content of a log. Panes are those of the job's axis."""

    lines: int = 0
    dead: int = 0
    records: Counter[int] = field(default_factory=Counter)
    """Lines that are records, by pane."""
    sums: dict[int, Counter[str]] = field(default_factory=dict)
    """The true sum of each key, by pane."""
    last: int = 0
    """The last pane: those before it are complete."""


class Log:
    """The log of one node, in a folder of its own. One thread writes."""

    def __init__(self, folder: Path, span: Span, random: Random, rotation: Rotation) -> None:
        folder.mkdir(parents=True)
        self.truth = Truth()
        self.glob = str(folder / "app.log*")
        self.rotations = 0
        self._path = folder / "app.log"
        self._span, self._random, self._rotation = span, random, rotation
        self._file = self._path.open("ab", buffering=0)

    def write(self, count: int) -> None:
        """Add `count` lines, in pieces that may end within a line."""
        data = b"".join(self._line() + b"\n" for _ in range(count))
        cut = self._random.randrange(len(data))
        for piece in (data[:cut], data[cut:]):
            self._file.write(piece)

    def rotate(self) -> None:
        """Begin a new file, and renumber the old ones."""
        folder = self._path.parent
        for number in range(self.rotations, 0, -1):
            os.rename(folder / f"app.log.{number}", folder / f"app.log.{number + 1}")
        self.rotations += 1
        if self._rotation == "rename":
            os.rename(self._path, folder / "app.log.1")
            self._file.close()
            self._file = self._path.open("ab", buffering=0)
        else:
            shutil.copyfile(self._path, folder / "app.log.1")
            os.truncate(self._path, 0)

    def close(self) -> None:
        self._file.close()

    def _line(self) -> bytes:
        """The next line; adds it to the truth."""
        truth, random = self.truth, self._random
        ts, second = time.time_ns() // 1_000, truth.lines // A_SECOND
        place: dict[Axis, int] = {"time": ts, "records": truth.lines, "sequence": second}
        pane = self._span.pane_of(place[self._span.axis])
        truth.lines += 1
        if random.random() < 0.02:
            truth.dead += 1
            line = random.choice(BROKEN)
            return line % second if b"%d" in line else line
        truth.last = max(truth.last, pane)
        key, n = random.choice(KEYS), random.randrange(1, 10)
        truth.records[pane] += 1
        truth.sums.setdefault(pane, Counter())[key] += n
        record = {"key": key, "n": n, "second": second, "ts": ts, "line": truth.lines}
        return json.dumps(record, ensure_ascii=False).encode()


class Growing(threading.Thread):
    """Lets logs grow until it is stopped, and rotates them now and then."""

    def __init__(self, logs: list[Log], random: Random, a_second: int = 2_000) -> None:
        super().__init__(daemon=True)
        self._logs, self._random, self._a_second = logs, random, a_second
        self._done = threading.Event()
        self.failed = ""

    def run(self) -> None:
        try:
            while not self._done.wait(0.02):
                for log in self._logs:
                    log.write(max(1, self._a_second // 50))
                    if self._random.random() < 0.02 and log.rotations < MOST_ROTATIONS:
                        log.rotate()
        except OSError as error:
            self.failed = str(error)

    def stop(self) -> None:
        """Stop; AssertionError if it could not write, since then the run shows nothing."""
        self._done.set()
        self.join()
        assert not self.failed, f"the log could not be written: {self.failed}"
