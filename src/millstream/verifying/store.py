"""Checks a whole store: every kind of durable file, one after the other."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from millstream.errors import StaleRead, StoreError
from millstream.stores.home import Home
from millstream.stores.shared.mirror_record import read_mirror
from millstream.stores.soft import read_committed
from millstream.verifying.findings import Findings
from millstream.verifying.logs import check_logs, check_missing_logs
from millstream.verifying.output_folders import check_outputs
from millstream.verifying.records import check_records
from millstream.verifying.row_consistency import Meaning
from millstream.verifying.shards import check_shards
from millstream.verifying.sources import check_positions, check_sources
from millstream.verifying.staged_output import check_missing, check_staging

TRIES = 5
"""Attempts to check the content of rows: the application may commit batches meanwhile."""


def verify(
    store: Path, say: Callable[[str], None] = lambda _: None, *, rows: bool = True
) -> Findings:
    """Check everything; without `rows`, all but the shards. Calls `say` with each next step."""
    findings = Findings()
    say("records")
    usable = check_records(store, findings)
    say("event logs")
    check_logs(store / "logs", findings)
    check_sources(store / "sources", findings)
    if not usable:
        return findings
    try:
        home, progress = Home.open(store), read_committed(store)
    except StoreError:
        check_staging(store / "staging", (), findings)
        return findings  # the damaged record is reported already
    mirror = read_mirror(store) is not None
    if not mirror or any((store / "sources").iterdir()):  # a mirror may have no lists of files
        check_positions(store / "sources", progress, findings)
    later = [name for _, names in progress.unpublished for name in names]
    check_staging(store / "staging", [*progress.staged, *later], findings)
    if not mirror:  # staged output of a shared store is in its place
        query = progress.query or home.facts.id  # a restored store has none before its first batch
        check_missing(store, query, progress, findings)
        check_missing_logs(store, home.facts, progress, findings)
        check_outputs(store, query, progress, findings)
    if not rows:
        return findings
    say("shards")
    if check_shards(home, findings) and progress.batch >= 0:
        say("slates")
        _check_meaning(home, findings)
    return findings


def _check_meaning(home: Home, findings: Findings) -> None:
    """Check the content of rows as of one batch. Retries if newer batches have replaced it
    meanwhile."""
    for _ in range(TRIES):
        own = Findings()
        try:
            _look(home, own)
        except StaleRead:
            home = Home.open(home.path)
            continue
        except StoreError as error:
            own.add(home.shards, str(error))
        findings.faults += own.faults
        findings.looked += own.looked
        return
    findings.looked["batches that went by too fast to look at their slates"] += TRIES


def _look(home: Home, findings: Findings) -> None:
    progress = read_committed(home.path)
    meaning = Meaning(home.facts, progress, findings)
    store = home.store()
    try:
        views = [store.shard(number).at(progress.batch) for number in range(store.shards)]
        try:
            for number, view in enumerate(views):
                path = home.shards / f"shard-{number:04d}" / "data.mdb"
                meaning.look(path, number, view)
        finally:
            for view in views:
                view.__exit__(None, None, None)
    finally:
        store.close()
    meaning.count(home.path / "progress")
