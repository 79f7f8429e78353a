"""Spark's checkpoint, against the batch that the store has committed."""

from __future__ import annotations

from pathlib import Path
from zlib import crc32

from millstream.checkpoint import id_of, is_whole, offset_of
from millstream.stores.progress import Progress
from millstream.verifying.findings import Findings

BACK = "restore the checkpoint from a copy of the store, or begin a new store with --store"
ANEW = "start the application, which writes it anew"
START = "start the application, which removes it: Spark had not begun with it"


def check_checkpoint(checkpoint: Path, progress: Progress, findings: Findings) -> None:
    """Look at metadata, offsets and commits."""
    _check_metadata(checkpoint / "metadata", progress, findings)
    committed = progress.batch
    for path in _numbered(checkpoint / "offsets"):
        findings.looked["files"] += 1
        number, content = int(path.name), _content(path)
        if content is None:
            continue
        if number == committed:
            if crc32(content) != progress.offsets:
                findings.add(path, f"is not what batch {committed} was committed with", BACK)
        elif not _is_offset(content):
            if number > committed and not is_whole(content):
                findings.add(path, "is torn", START)
            elif number > committed:
                findings.add(path, "the offset in it does not fit its checksum", BACK)
            else:
                mend = ANEW if number == committed - 1 else "delete it"
                findings.add(path, "is damaged; it is of an old batch", mend)
    if committed >= 0 and not (checkpoint / "offsets" / str(committed)).exists():
        path = checkpoint / "offsets" / str(committed)
        findings.add(path, f"is missing, and the store has committed batch {committed}", BACK)
    for path in _numbered(checkpoint / "commits"):
        findings.looked["files"] += 1
        content = _content(path)
        if content is not None and not is_whole(content):
            findings.add(path, "is torn", "start the application, which removes it")


def _check_metadata(path: Path, progress: Progress, findings: Findings) -> None:
    content = _content(path)
    if content is None:
        if progress.batch >= 0:
            findings.add(path, "is missing", BACK)
        return
    findings.looked["files"] += 1
    try:
        query = id_of(content)
    except ValueError as error:
        findings.add(path, f"cannot be read: {error}", BACK)
        return
    if progress.batch >= 0 and query != progress.query:
        findings.add(path, f"is of query {query}, and query {progress.query} filled it", BACK)


def _numbered(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("[0-9]*") if path.name.isdigit())


def _content(path: Path) -> bytes | None:
    """What a file holds; None if Spark has removed it, or never wrote it."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _is_offset(content: bytes) -> bool:
    try:
        offset_of(content)
        return True
    except ValueError:
        return False
