"""Where the dataflows read, write and say how far they are."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from bytewax import operators as op
from bytewax.connectors.files import DirSink, DirSource
from bytewax.dataflow import Dataflow, Stream
from bytewax.inputs import FixedPartitionedSource, StatefulSourcePartition
from progress import Progress

BATCH = 1_000
slots = Progress(f"{os.environ['PEER_PROGRESS']}-{os.environ['PEER_PROCESS']}").slots


def lines(step: str, flow: Dataflow, folder: str) -> Stream[str]:
    """The lines of the files of a folder of the input, each file read by one worker."""
    return op.input(step, flow, DirSource(Path(os.environ["PEER_INPUT"]) / folder))


Position = tuple[int, int]
"""The number of a file, and a place in it."""


class LinesInOrder(StatefulSourcePartition[str, Position]):
    """Reads files one after the other, so that times come in order."""

    def __init__(self, paths: list[Path], resumed: Position | None) -> None:
        self._paths = paths
        self._number, at = resumed or (0, 0)
        self._file = paths[self._number].open()
        self._file.seek(at)

    def next_batch(self) -> list[str]:
        found = [line for line in (self._file.readline() for _ in range(BATCH)) if line]
        slots[int(os.environ["PEER_PROCESS"])] += len(found)
        if not found:
            self._file.close()
            self._number += 1
            if self._number == len(self._paths):
                raise StopIteration
            self._file = self._paths[self._number].open()
        return found

    def snapshot(self) -> Position:
        if self._file.closed:
            return len(self._paths) - 1, self._paths[-1].stat().st_size
        return self._number, self._file.tell()


class FilesInOrder(FixedPartitionedSource[str, Position]):
    """All files of a folder as one partition: the directory source reads them side by side, and
    windows would be over before their events come."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def list_parts(self) -> list[str]:
        return ["all"]

    def build_part(
        self, step_id: str, for_part: str, resume_state: Position | None
    ) -> LinesInOrder:
        return LinesInOrder(sorted(self._folder.iterdir()), resume_state)


def lines_in_order(step: str, flow: Dataflow, folder: str) -> Stream[str]:
    """The lines of the files of a folder of the input, in order."""
    return op.input(step, flow, FilesInOrder(Path(os.environ["PEER_INPUT"]) / folder))


def written(step: str, answers: Stream[tuple[str, Any]]) -> None:
    """Writes keys with their answers into files, each by one worker."""
    texts = op.map(f"{step} as text", answers, lambda item: (item[0], json.dumps(item)))
    op.output(step, texts, DirSink(Path(os.environ["PEER_RESULT"]), 2))
