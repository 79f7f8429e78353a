"""Checks what sinks have written outside of the store: folders of files, logs and SQLite files.

Only what the last batches need is checked: that the folder or file exists and, in a folder of JSON
lines or Parquet, that the sink's record can be read and its current file is not cut short. A file
that was moved out of the folder is not reported: the sink begins a new one.
"""

from __future__ import annotations

import os
from pathlib import Path

from millstream.description import read_description
from millstream.errors import InputError, StoreError
from millstream.sinks.files import BegunBatch, read_begun, record_path
from millstream.sources.address import LOG, PARQUET, SQLITE, parse_address
from millstream.stores.home import log_of
from millstream.stores.progress import Progress
from millstream.verifying.findings import Findings

FILES = ("json", PARQUET)
LOCAL = (*FILES, LOG, SQLITE)
GONE = "restore it from a copy; or start the application, which goes on in a new one"
CUT = "restore it from a copy; or move it away, and the sink goes on in a new one"


def check_outputs(store: Path, query: str, progress: Progress, findings: Findings) -> None:
    """Check the outputs of the last run; `query` is the id by which its sinks know batches."""
    try:
        description = read_description(store)
    except (StoreError, ValueError):
        return  # `records` reports the damaged description
    if description is None or progress.batch < 0:
        return
    counts = {"late": progress.late, "deadletters": progress.dead_letters}
    counts["dropped"] = progress.total().dropped
    for name, text in description.addresses.items():
        try:
            address = parse_address(text)
        except InputError:
            continue  # of an action
        path = Path(address.path)
        if address.format not in LOCAL or path == log_of(store.absolute(), name):
            continue
        # Changes of slates are not counted.
        streams = name in description.streams
        written = counts.get(name, progress.emitted.get(name, 0) if streams else 1)
        if not written:
            continue
        findings.looked["outputs"] += 1
        if not path.exists():
            findings.add(path, f"is missing, and output of {name!r} was written to it", GONE)
        elif address.format in FILES:
            _check_files(store, record_path(address.path, query), findings)


def _check_files(store: Path, record: str, findings: Findings) -> None:
    """Check the record of a sink, and the file to which it adds."""
    try:
        begun = read_begun(record)
        if begun is None or _is_whole(record, begun):
            return
        # After a crash, or while a batch is being published, staged output completes the file.
        staged = any((store / "staging").glob("*.rows"))
        if staged or read_begun(record) != begun or _is_whole(record, begun):
            return
    except StoreError as error:
        wrong = str(error).removeprefix(f"sink record {record}: ").partition("; restore")[0]
        findings.add(record, wrong, "restore it from a copy, or name another directory")
        return
    file = os.path.join(os.path.dirname(record), begun.file)
    size = os.path.getsize(file)
    wrong = f"must have {begun.size:,} bytes, as published; it has {size:,}"
    findings.add(file, wrong, CUT)


def _is_whole(record: str, begun: BegunBatch) -> bool:
    """True unless the file is shorter than published. One that is missing was moved away."""
    try:
        return os.path.getsize(os.path.join(os.path.dirname(record), begun.file)) >= begun.size
    except FileNotFoundError:
        return True
