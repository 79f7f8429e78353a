"""Migrates all stored slates of an application to their current form, in bulk.

Slates migrate by themselves when they are next used. This migrates all at once: for readers, who
see slates as they are stored, and so that old migrations can be removed. It works in batches of its
own, each committed like any other. If it is stopped, what was committed stays, and the next
migration continues from there. The application must not run meanwhile.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import islice

from millstream.codec import slate_codec
from millstream.counted_nouns import counted
from millstream.driver.run import open_home, open_logs
from millstream.driver.startup.start import Started, start
from millstream.engine.cells.room import abandoned
from millstream.engine.progress import Report
from millstream.errors import SlateError
from millstream.model.app import AppDefinition
from millstream.model.function import Update
from millstream.model.slate import Table
from millstream.model.workflow import Workflow
from millstream.settings.settings import Settings
from millstream.slate_versions import migrated_entries, read_slate
from millstream.stores.contract import Fence, View, after_prefix
from millstream.stores.home import Home, held
from millstream.stores.layout import pack_slate, slates_of, table_of, unpack_slate
from millstream.wall_clock import wall_clock

TOGETHER = 20_000
"""The number of slates of one shard that a batch reads."""
Rows = dict[bytes, bytes | None]


@dataclass
class Migrated:
    """The results of a migration, by update."""

    slates: Counter[str] = field(default_factory=Counter)
    """Slates that were read."""
    changed: Counter[str] = field(default_factory=Counter)
    unfit: Counter[str] = field(default_factory=Counter)
    """Slates that cannot be migrated; they stay as they are."""
    error: str = ""
    """The error of the last one that cannot be migrated."""


def migrate(app: AppDefinition, settings: Settings, say: Callable[[str], None]) -> Migrated:
    """Migrates all slates of a store to the application's form. No driver may run on the store."""
    workflow = settings.updates.applied(app.checked())
    settings = settings.changed(available_now=True, flush=None)
    done = Migrated()
    with held(settings.storage.store), ExitStack() as opened:
        home = open_home(settings, workflow.slate_kinds)
        logs = open_logs(home)
        if logs is not None:
            opened.callback(logs.close)
        stop = threading.Event()
        started = opened.enter_context(
            start(home, workflow, settings, say, stop, logs, take_in=False)
        )
        for update in workflow.updates:
            if update.algebra is None:
                _migrate(home, started, update, done, say)
        _forget_versions(home, workflow, done)
        started.progress.batch += 1
        home.write_progress(started.progress)  # in a shared store, this also commits the facts
    return done


def _migrate(
    home: Home, started: Started, update: Update, done: Migrated, say: Callable[[str], None]
) -> None:
    stored, progress = home.facts.stored(update.name), started.progress
    prefix = slates_of(stored)
    starts: dict[int, bytes | None] = dict.fromkeys(range(home.facts.shards), prefix)
    while any(begin is not None for begin in starts.values()):
        store, batch = started.flushing.next_store(), progress.batch + 1
        changes: dict[int, dict[str, Rows]] = {}
        for number, begin in starts.items():
            if begin is None:
                continue
            with store.shard(number).at(progress.batch) as view:
                rows, starts[number] = _rows(update, stored, view, begin, done)
            if rows:
                changes[number] = {stored: rows}
        if not changes:
            continue
        refs = store.commit(Fence(started.epoch, batch, 0), changes)
        started.flushing.written([Report(changes=refs)])
        progress.batch, progress.staged = batch, []
        progress.last_batches = started.flushing.last_batches()
        progress.written = wall_clock()
        home.write_progress(progress)
        say(f"{update.name}: {counted(done.changed[update.name], 'slate')} migrated")


def _rows(
    update: Update, stored: str, view: View, begin: bytes, done: Migrated
) -> tuple[Rows, bytes | None]:
    """Returns the changed rows of the next slates of a shard, and where to continue after them."""
    prefix, changes = slates_of(stored), Rows()
    last: bytes | None = None
    for row, data in islice(view.scan(begin, after_prefix(prefix)), TOGETHER):
        last = row + b"\x00"
        done.slates[update.name] += 1
        try:
            changed = dict(_changed(update, stored, row[len(prefix) :].decode(), data, view))
        except SlateError as error:
            done.unfit[update.name] += 1
            done.error = str(error)
            continue
        if changed:
            done.changed[update.name] += 1
            changes.update(changed)
    if changes:
        # The order of slates for `room` holds their sizes: it is deleted here and rebuilt later.
        changes.update(abandoned(view, stored))
    return changes, last


def _changed(
    update: Update, stored: str, key: str, row: bytes, view: View
) -> Iterator[tuple[bytes, bytes | None]]:
    """Yields the rows of a slate that differ from what the update would store."""
    slate = unpack_slate(row)
    if update.slate is Table:
        if slate.version == update.version:
            return
        table = table_of(stored, key)
        entries = {
            entry.decode(): value
            for entry, value in view.scan(table, after_prefix(table), cut=len(table))
        }
        migrated = migrated_entries(update, slate.version, entries)
        for entry in entries.keys() - migrated.keys():
            yield table + entry.encode(), None
        for entry, value in migrated.items():
            if entries.get(entry) != value:
                yield table + entry.encode(), value
        data = b""
    else:
        data = slate_codec(update.slate).encode(read_slate(update, slate.version, slate.data))
        if (data, slate.version) == (slate.data, update.version):
            return
    yield (
        slates_of(stored) + key.encode(),
        pack_slate(slate.last, data, slate.timers, update.version),
    )


def _forget_versions(home: Home, workflow: Workflow, done: Migrated) -> None:
    """Records that updates without unmigrated slates have only slates of the current version."""
    for update in workflow.updates:
        if not done.unfit[update.name]:
            home.facts.slates[update.name].versions = [update.version]
    home.write_facts()
