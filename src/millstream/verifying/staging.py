"""Staged output: files of the last committed batches that the sinks have not published yet."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from millstream.engine.progress import read_staged
from millstream.errors import StoreError
from millstream.verifying.findings import Findings

DELETE = "restore it from a copy, or delete it to go on without that output"


def check_staging(folder: Path, staged: Collection[str], findings: Findings) -> None:
    """Look at what is staged; `staged` are the files that are still to be published.

    Any other is left of a try that failed, and goes at the next start, whatever is in it.
    """
    for path in sorted(folder.glob("*.rows")):
        findings.looked["files"] += 1
        try:
            read_staged(path)
        except StoreError as error:
            if path.name in staged and path.exists():
                wrong = str(error).removeprefix(f"{path}: ").partition("; ")[0]
                findings.add(path, wrong, DELETE)
