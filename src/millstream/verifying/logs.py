"""Checks event logs: every segment, block, tag and reader, and the file `end`; and that logs exist
which committed batches have read from or written to."""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path

import msgspec

from millstream.counted_nouns import counted, verb
from millstream.description import read_description
from millstream.errors import LogError, StoreError
from millstream.letters.retry_log import RETRIED
from millstream.log.blocks import BadBlock, holds_a_block, walk
from millstream.log.readers import knows, read_committed_by
from millstream.log.segments import Segment, list_segments, read_end
from millstream.stores.home import Facts, log_of
from millstream.stores.progress import Progress
from millstream.verifying.findings import COPY, Findings

LOG = "log:"
START = "begin a new store with --store: this one does not start with a log that does not know it"
WHOLE = "restore the log's folder from a copy, or move it away to begin a new log"
TAIL = "start what writes to it: an append that was never acknowledged is then cut off"


def check_logs(folder: Path, findings: Findings) -> None:
    for log in sorted(path for path in folder.glob("*") if path.is_dir()):
        try:
            check_log(log, findings)
        except (LogError, OSError) as error:
            findings.add(log, str(error), WHOLE)


def check_log(log: Path, findings: Findings) -> None:
    """Check one log; records appended meanwhile may or may not be included."""
    findings.looked["logs"] += 1
    end = read_end(log)
    segments = list_segments(log)
    for segment, following in pairwise(segments):
        size, must = os.stat(segment.path).st_size, following.offset - segment.offset
        if size != must:
            wrong = f"must have {must:,} bytes, as the next segment's name says; it has {size:,}"
            findings.add(segment.path, wrong, WHOLE)
    reached = [0, 0]
    for number, segment in enumerate(segments):
        last = number == len(segments) - 1
        reached = _check_segment(segment, last, end, findings)
    if end is None and (log / "end").exists():
        findings.looked["files"] += 1
        findings.add(log / "end", "does not fit its checksum", "start what writes to the log")
    elif end is not None:
        findings.looked["files"] += 1
        if end > reached:
            wrong = f"ends at record {reached[1]:,}, but `end` says that {end[1]:,} were on disk"
            file = segments[-1].path if segments else log
            repair = f"{WHOLE}; or, to go on without the lost records, delete {log / 'end'}"
            if not any(finding.file == file for finding in findings.faults):
                findings.add(file, wrong, repair)
    for path in sorted((log / "readers").glob("[!.]*.json")):
        findings.looked["files"] += 1
        try:
            read_committed_by(path)
        except ValueError as error:
            repair = "start the application, which rewrites it; until then the log keeps all"
            findings.add(path, f"cannot be read: {error}", repair)


def _check_segment(
    segment: Segment, last: bool, recorded_end: list[int] | None, findings: Findings
) -> list[int]:
    """Walk all blocks of a segment; returns the position up to which it is undamaged."""
    findings.looked["files"] += 1
    position = [segment.offset, segment.first]
    try:
        file = os.open(segment.path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return position  # retention has removed it meanwhile
    try:
        size = os.fstat(file).st_size
        try:
            stop = segment.offset + size
            for block in walk(file, segment.offset, segment.offset, stop, segment.first):
                block.tags()
                findings.looked["blocks"] += 1
                findings.looked["records"] += block.header.count
                position = [block.next_offset, block.header.first + block.header.count]
        except BadBlock as error:
            place = error.offset - segment.offset
            acknowledged = recorded_end is not None and position < recorded_end
            rest = os.pread(file, size - place, place)
            if not last or acknowledged or holds_a_block(rest):
                findings.add(segment.path, f"is damaged at byte {place:,}: {error.why}", WHOLE)
            else:
                wrong = f"ends with {counted(size - place, 'byte')} that are not a block"
                findings.add(segment.path, wrong, TAIL)
        except msgspec.MsgspecError as error:
            findings.add(segment.path, f"has tags that cannot be read: {error}", WHOLE)
    finally:
        os.close(file)
    return position


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
