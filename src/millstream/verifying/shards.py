"""Checks the shards: every row, in a child process, and the fence file of each."""

from __future__ import annotations

from pathlib import Path

from millstream.stores.environment import FENCE_BYTES, REPAIR, unpack_fence
from millstream.stores.home import Home
from millstream.stores.integrity.shard_checks import ShardChecks, shard_folders
from millstream.stores.soft import read_committed
from millstream.verifying.findings import Findings

START = "start the application, which rewrites it"


def check_shards(home: Home, findings: Findings) -> bool:
    """Check all shards. Returns True if none is damaged: the content of their rows can then be
    checked."""
    home.check_readable()
    there, missing = shard_folders(home)
    for folder in missing:
        findings.add(folder, "is missing", REPAIR)
    whole = not missing
    known = read_committed(home.path).last_batches
    written = {str(home.shards / f"shard-{n:04d}"): last for n, last in enumerate(known)}
    for checked in ShardChecks(there).results():
        findings.looked["shards"] += 1
        findings.looked["files"] += 1
        findings.looked["rows"] += checked.rows
        findings.looked["tombstones"] += checked.tombstones
        last = written.get(checked.path, -1)
        if not checked.findings and checked.last < last:
            wrong = f"was changed in batch {last}, but says that its last batch is {checked.last}"
            checked.findings.append(wrong)
        for wrong in checked.findings:
            findings.add(Path(checked.path) / "data.mdb", wrong, REPAIR)
            whole = False
    for folder in there:
        path = Path(folder) / "fence"
        if path.exists():
            findings.looked["files"] += 1
            with path.open("rb") as file:
                if unpack_fence(file.read(FENCE_BYTES + 1)) is None:
                    findings.add(path, "does not fit its checksum", START)
    return whole
