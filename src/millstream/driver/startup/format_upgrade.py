"""Upgrades a store of an earlier format, once, at the first start.

In format 5 no row is recent (`stores.recent_rows`). Formats 3 and 4 had the same rows as format 5,
and another form of `progress`, which can still be read (`stores.progress.decoded`); the next batch
writes today's. So the upgrade only notes the format.

In format 2, Spark planned and committed batches too: `checkpoint/` held the positions of the next
batch. The positions are also in `progress`, which was decisive then as well, and an unfinished
batch is undone like any other. So the upgrade deletes the checkpoint and changes nothing else.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from millstream.stores.home import FORMAT, Home
from millstream.stores.progress import Progress

CHECKPOINT = "checkpoint"


def has_committed(store: Path) -> bool:
    """True if Spark has committed a batch of this store of format 2."""
    return any((store / CHECKPOINT / "commits").glob("[0-9]*"))


def upgrade(home: Home, progress: Progress) -> str | None:
    """Upgrades a recovered store; returns a message if there was something to do.

    Each step can be repeated, and the store can be read at any moment.
    """
    message = None
    if home.facts.format < FORMAT:
        if home.read_progress() is None:
            home.write_progress(progress)
        message = (
            f"{home.path}: the store had format {home.facts.format} and has format {FORMAT} now; "
            "earlier versions of Millstream do not open it any more"
        )
        home.facts.format = FORMAT
        home.write_facts()
    shutil.rmtree(home.path / CHECKPOINT, ignore_errors=True)
    return message
