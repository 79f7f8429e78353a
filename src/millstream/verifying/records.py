"""Checks the small files: one record each, with a checksum, replaced as a whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from millstream.actions.record import RETRY, Position, folder_of
from millstream.description import FILE as DESCRIPTION
from millstream.description import Description
from millstream.durable import GIVE_READING, read_record
from millstream.errors import StoreError
from millstream.stores.home import FORMAT, READABLE, Facts
from millstream.stores.progress import Progress
from millstream.stores.soft import FLUSHED, SOFT, Flushed, Soft
from millstream.verifying.findings import COPY, Findings

REPLAY = f"{COPY}, or begin a new store with --store and replay the sources"
ANEW = "delete the file: the next start rewrites it"
MENDED = "start the application: it learns the number from the shards, and rewrites the file"


def check_records(store: Path, findings: Findings) -> bool:
    """Check all records. Returns True if the store's facts can be relied on."""
    facts = checked(store / "store.json", Facts, REPLAY, findings)
    if facts is None and not (store / "store.json").exists():
        findings.add(store / "store.json", "is missing", REPLAY)
    elif facts is not None and facts.format not in READABLE:
        repair = "use the version of Millstream that wrote it, or begin a new store with --store"
        findings.add(store / "store.json", f"has format {facts.format}, not {FORMAT}", repair)
        facts = None
    _check_epoch(store / "epoch", findings)
    checked(store / "progress", Progress, REPLAY, findings)
    checked(store / FLUSHED, Flushed, REPLAY, findings)
    checked(store / SOFT, Soft, REPLAY, findings)
    checked(store / DESCRIPTION, Description, ANEW, findings)
    for path in sorted(folder_of(store).glob("[!.]*")):
        if path.name.endswith(RETRY):
            repair = (
                f"delete it, then ask again: millstream actions retry {path.name[: -len(RETRY)]}"
            )
            checked(path, dict[str, int], repair, findings)
        else:
            repair = f"{COPY}, or delete it: what waits in the action's log is then not carried out"
            checked(path, Position, repair, findings)
    if facts is not None and facts.format > 2 and not (store / "progress").exists():
        findings.add(store / "progress", "is missing", REPLAY)
    return facts is not None


def checked(path: Path, kind: Any, repair: str, findings: Findings) -> Any:
    """Returns the content of a file. Returns None if it does not exist, or reports that it is
    damaged."""
    try:
        data = read_record(path)
        if data is None:
            return None
        findings.looked["files"] += 1
        return msgspec.json.decode(data, type=kind)
    except (StoreError, OSError) as error:
        findings.add(path, *_trouble(path, error, repair))
    except (ValueError, UnicodeDecodeError) as error:
        findings.add(path, f"has invalid content: {error}", repair)
    return None


def _check_epoch(path: Path, findings: Findings) -> None:
    try:
        data = read_record(path)
        if data is not None:
            findings.looked["files"] += 1
            int(data)
    except (StoreError, OSError, ValueError) as error:
        findings.add(path, *_trouble(path, error, MENDED))


def _trouble(path: Path, error: Exception, repair: str) -> tuple[str, str]:
    """Returns what is wrong with a file, and the repair."""
    if isinstance(error.__cause__, PermissionError):
        return "cannot be read: Permission denied", GIVE_READING
    return str(error).removeprefix(f"{path}: ").partition(": the file")[0], repair
