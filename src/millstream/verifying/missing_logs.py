"""Checks that event logs exist: those of sources that were read, and those with output."""

from __future__ import annotations

from pathlib import Path

from millstream.counted_nouns import counted, verb
from millstream.description import read_description
from millstream.errors import StoreError
from millstream.letters.retry_log import RETRIED
from millstream.log.readers import knows
from millstream.stores.home import Facts, log_of
from millstream.stores.progress import Progress
from millstream.verifying.findings import COPY, Findings

LOG = "log:"
START = "begin a new store with --store: this one does not start with a log that does not know it"


def check_missing_logs(store: Path, facts: Facts, progress: Progress, findings: Findings) -> None:
    """Report missing logs that the committed batches have read from or written to."""
    try:
        description = read_description(store)
    except (StoreError, ValueError):
        return  # `records` reports the damaged description
    if description is None:
        return
    for source in description.sources:
        taken = progress.sources.get(source.name)
        address = source.address or ""
        if taken is None or taken.position is None or not address.startswith(LOG):
            continue
        log = store / address.removeprefix(LOG)
        reader = f"{facts.app}-{facts.id[:8]}-{source.name}"
        if not log.is_dir():
            findings.add(log, "is missing, and records of the source were taken from it", COPY)
        elif not knows(log, reader):
            wrong = "is missing: the log does not know that the store has read it"
            findings.add(log / "readers" / f"{reader}.json", wrong, f"{COPY}; or {START}")
    retried = progress.sources.get(RETRIED)
    if retried is not None and retried.position is not None and not log_of(store, RETRIED).is_dir():
        findings.add(log_of(store, RETRIED), "is missing, and letters were given from it", COPY)
    written = {stream: progress.emitted.get(stream, 0) for stream in description.outputs}
    written |= {"late": progress.late, "deadletters": progress.dead_letters}
    for stream, count in written.items():
        log = log_of(store, stream)
        if count and not log.is_dir():
            records = f"{counted(count, 'record')} {verb(count, 'was', 'were')}"
            findings.add(log, f"is missing, and {records} written to it", COPY)
