"""Checks staged output: files of the last committed batches that sinks have not published yet."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import closing
from pathlib import Path

from millstream.engine.sink_rows import read_staged
from millstream.errors import LogError, StoreError
from millstream.log.reader import LogReader
from millstream.stores.progress import Progress
from millstream.stores.soft import read_committed
from millstream.verifying.findings import Findings

RESTORE = "restore it, or the whole store, from a copy; or begin a new store with --store"
DELETE = "restore it from a copy, or delete it to go on without that output"


def check_staging(folder: Path, staged: Collection[str], findings: Findings) -> None:
    """Check staged files; `staged` are the ones that must still be published.

    Any other file is from a failed attempt, and the next start deletes it, whatever its content.
    """
    for path in sorted(folder.glob("*.rows")):
        findings.looked["files"] += 1
        try:
            read_staged(path)
        except StoreError as error:
            if path.name in staged and path.exists():
                wrong = str(error).removeprefix(f"{path}: ").partition("; ")[0]
                findings.add(path, wrong, DELETE)


def check_missing(store: Path, query: str, progress: Progress, findings: Findings) -> None:
    """Check that the output of the last committed batch is published or staged.

    `query` is the name under which the store publishes its batches.
    """
    missing = [name for name in progress.staged if not (store / "staging" / name).exists()]
    if not missing or progress.soft or _is_published(store, query, progress.batch):
        return
    if read_committed(store).batch == progress.batch:  # otherwise the application has run on
        for name in missing:
            wrong = f"is missing, and the output of batch {progress.batch} was not published"
            findings.add(store / "staging" / name, wrong, RESTORE)


def _is_published(store: Path, query: str, batch: int) -> bool:
    """True if a log of the store has output of the batch."""
    begins = f"{query}:{batch}:"
    for path in sorted((store / "logs").glob("*")):
        try:
            with closing(LogReader(path)) as reader:
                for block in reader.blocks(reader.start[0], reader.end[0]):
                    if any(tag.tag.startswith(begins) for tag in block.tags):
                        return True
        except LogError:
            return True  # not known; `logs` reports the damaged log
    return False
