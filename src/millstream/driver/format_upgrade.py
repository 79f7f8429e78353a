"""Stores of the format before this one are carried over, once, by the first start.

Format 2 had batches planned and committed by Spark too: its `checkpoint/` held the positions of the
batch to come. They are in `progress`, which is what counted then as well; an unfinished batch is
undone like any other. So the checkpoint goes, and nothing else changes.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from millstream.stores.home import FORMAT, Home
from millstream.stores.progress import Progress

CHECKPOINT = "checkpoint"


def has_committed(store: Path) -> bool:
    """Whether Spark had committed a batch of a store of format 2."""
    return any((store / CHECKPOINT / "commits").glob("[0-9]*"))


def upgrade(home: Home, progress: Progress) -> str | None:
    """Carry a recovered store over; a sentence about it if there was something to do.

    Each step can be done again, and the store can be read at any moment.
    """
    said = None
    if home.facts.format < FORMAT:
        if home.read_progress() is None:
            home.write_progress(progress)
        said = (
            f"{home.path}: the store had format {home.facts.format} and has format {FORMAT} now, "
            "which Spark keeps no files in; earlier versions of Millstream do not open it any more"
        )
        home.facts.format = FORMAT
        home.write_facts()
    shutil.rmtree(home.path / CHECKPOINT, ignore_errors=True)
    return said
