"""Where the dataflows read, write and say how far they are."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from bytewax import operators as op
from bytewax.connectors.files import DirSink, DirSource, FileSource
from bytewax.dataflow import Dataflow, Stream
from progress import Progress

slots = Progress(f"{os.environ['PEER_PROGRESS']}-{os.environ['PEER_PROCESS']}").slots


def lines(step: str, flow: Dataflow, folder: str) -> Stream[str]:
    """The lines of the files of a folder of the input, each file read by one worker."""
    return op.input(step, flow, DirSource(Path(os.environ["PEER_INPUT"]) / folder))


def lines_in_order(step: str, flow: Dataflow, folder: str) -> Stream[str]:
    """The lines of the only file of a folder of the input, in order."""
    (path,) = (Path(os.environ["PEER_INPUT"]) / folder).iterdir()
    return op.input(step, flow, FileSource(path))


def written(step: str, answers: Stream[tuple[str, Any]]) -> None:
    """Writes keys with their answers into files, each by one worker."""
    texts = op.map(f"{step} as text", answers, lambda item: (item[0], json.dumps(item)))
    op.output(step, texts, DirSink(Path(os.environ["PEER_RESULT"]), 2))
