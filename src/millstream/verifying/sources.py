"""Checks the logs of files taken in: the checksum of every line, and the sources' positions."""

from __future__ import annotations

from pathlib import Path

import msgspec

from millstream.counted_nouns import counted
from millstream.durable import without_checksum
from millstream.letters.retry_log import RETRIED
from millstream.stores.progress import Progress
from millstream.verifying.findings import COPY, Findings

REPLAY = f"{COPY}, or begin a new store with --store: only this log says which files were taken in"


def check_sources(folder: Path, findings: Findings) -> None:
    """Check the logs of all sources that read files."""
    for path in sorted(folder.glob("*.log")):
        findings.looked["files"] += 1
        *lines, begun = path.read_bytes().split(b"\n")
        for number, line in enumerate(lines, 1):
            findings.looked["lines"] += 1
            try:
                msgspec.json.decode(without_checksum(line))
            except ValueError as error:
                if number == len(lines) and not begun:
                    _torn(path, findings)
                else:
                    findings.add(path, f"line {number} is damaged: {error}", REPLAY)
                break
        else:
            if begun:
                _torn(path, findings)


def check_positions(folder: Path, progress: Progress, findings: Findings) -> None:
    """Check that the logs have the files that the committed batches have taken in."""
    for name, source in progress.sources.items():
        path = folder / f"{name}.log"
        if source.position is None or name == RETRIED:  # RETRIED is no source of the application
            continue
        if not path.exists():
            findings.add(path, "is missing, and records of the source were taken in", REPLAY)
            continue
        files = _files_in(path)
        if files is None:
            continue  # this source's position does not count files
        taken, begun = source.position
        if taken + (begun > 0) > files:
            wrong = f"has {counted(files, 'file')}, and {taken + (begun > 0):,} were taken in"
            findings.add(path, wrong, REPLAY)


def _files_in(path: Path) -> int | None:
    """The number of files in a log; None if the source reads no files, or the log is damaged."""
    try:
        head, *lines = path.read_bytes().split(b"\n")[:-1] or [b""]
        if msgspec.json.decode(without_checksum(head))["format"] in ("log", "kafka"):
            return None
        return sum(len(msgspec.json.decode(without_checksum(line))) for line in lines)
    except (ValueError, KeyError, TypeError):
        return None  # `check_sources` reports a damaged line


def _torn(path: Path, findings: Findings) -> None:
    repair = (
        "start the application: a line torn by a crash is cut off, and its files are listed again"
    )
    findings.add(path, "its last line is torn or damaged", f"{repair}; otherwise {REPLAY}")
