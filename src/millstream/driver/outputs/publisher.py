"""Publishes staged output to the sinks.

The output of a batch is staged durably before the batch is committed. It is published after the
commit, in content order or in the order that the output declares. The commit names the batch's
files, so what a failed attempt has staged is never published. The files are deleted once every sink
has the batch. So files that exist at a start are output that the last driver did not publish, and
are published then. Publishing again changes nothing. The next batch may be staged while one is
published.

Every output stream is written to an event log in the store, where it can be tailed. So are late
events and dead letters. A sink that the settings name is one more copy. A stream that is read from
a log as a source is in that log already, and is not written again.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from math import inf
from pathlib import Path
from typing import Any

import msgspec

from millstream.codec import canonical, decode_value
from millstream.driver.outputs.output_sinks import (
    OWN_COLUMNS,
    ChangeSink,
    RowChangeSink,
    Sink,
    columns_of,
    opened_change_sink,
    opened_sink,
)
from millstream.driver.outputs.sink_retry import SinkRetry
from millstream.driver.outputs.table_sinks import check_own_tables
from millstream.driver.startup.recovery import GONE, OLDER
from millstream.engine.progress import Report
from millstream.engine.sink_rows import SinkRows, event_row, read_staged, sink_row
from millstream.errors import StoreError, StoreLocked
from millstream.log.retention import FOR_EVER, Retention
from millstream.log.stream_logs import StreamLogs
from millstream.places.place import folders_in
from millstream.sinks.columns import ENTRY_CHANGE_COLUMNS, Columns
from millstream.sinks.log_sink import LogSink
from millstream.slate_changes import SlateChanges
from millstream.sources.address import Address
from millstream.stores.home import Home
from millstream.stores.progress import Progress

TOGETHER_BYTES = 8 * 1024 * 1024
"""About how much staged output of several batches is published at once."""


@dataclass(slots=True)
class Output:
    """The output of one batch, or of several, by name."""

    rows: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    changes: dict[str, SlateChanges] = field(default_factory=dict)

    def extend(self, later: Output) -> None:
        for name, rows in later.rows.items():
            self.rows.setdefault(name, []).extend(rows)
        for name, changes in later.changes.items():
            self.changes.setdefault(name, SlateChanges()).extend(changes)


class Publisher:
    """Stages and publishes the output of batches. Sinks identify a batch by `query` and number."""

    def __init__(
        self,
        home: Home,
        query: str,
        sinks: dict[str, Address],
        retention: Retention,
        logged: Collection[str],
        retry: SinkRetry,
        logs: StreamLogs | None = None,
        changes: Mapping[str, Columns] | None = None,
        slates: Mapping[str, type] | None = None,
        order_by: Mapping[str, str] | None = None,
        values: Mapping[str, type] | None = None,
    ) -> None:
        """`retention` is for the logs of outputs; late events and dead letters are kept for ever.

        `logged` are the streams that are read from a log. A sink that fails is retried according
        to `retry`. `logs` are the store's logs; None if they are in its folder. `changes` has the
        columns of each output of changes of slates, `slates` the types of these slates, where
        known. `values` has the declared types of events' values. `order_by` has the outputs that
        are ordered by a field.
        """
        self._stream_logs = logs
        self._retry = retry
        self._home = home
        self._logged = logged
        self._retention = retention
        self._query = query
        self._logs: dict[str, LogSink] = {}
        self._sinks: dict[str, Sink] = {}
        self._change_sinks: dict[str, ChangeSink] = {}
        self._changes = changes or {}
        self._order_by = order_by or {}
        check_own_tables(sinks)
        for name, address in sinks.items():
            own = os.path.realpath(home.log_of(name))
            if not address.is_service and os.path.realpath(address.path) == own:
                continue  # every output is written to this log anyway
            if name in self._changes:
                self._change_sinks[name] = opened_change_sink(
                    name,
                    address,
                    query,
                    retention,
                    self._changes[name],
                    (slates or {}).get(name, dict),
                )
            else:
                self._sinks[name] = opened_sink(
                    name, address, query, retention, (values or {}).get(name)
                )

    def close(self) -> None:
        """Closes all sinks."""
        for sink in (*self._logs.values(), *self._sinks.values()):
            sink.close()
        for change_sink in self._change_sinks.values():
            change_sink.close()

    def _log(self, name: str) -> LogSink:
        """Returns the stream's own log."""
        if name not in self._logs:
            kept = FOR_EVER if name in OWN_COLUMNS else self._retention
            columns = columns_of(name, self._changes)
            path = self._home.log_of(name)
            self._logs[name] = LogSink(path, self._query, columns, kept, self._stream_logs)
        return self._logs[name]

    def check(self, streams: Collection[str], committed: Progress) -> None:
        """Refuses a store whose output logs or staged files do not fit the last committed batch.

        - A log has output of a later batch: then the record of the last committed batch is an old
          one, and another batch of that number would not be published.
        - The last batch was not published, and its staged output is missing.

        Changes nothing. Raises StoreError, or LogError if a log is damaged.
        """
        published = -1
        for name in {*streams, *OWN_COLUMNS} - set(self._logged):
            last = self._log(name).last_batch()
            published = max(published, last)
            if last > committed.batch and self._home.place is not None:
                raise StoreLocked(
                    f"{self._home.name}: the log of {name!r} has output of batch {last}, and this "
                    f"start has found the commits up to {committed.batch}: another driver runs "
                    "beside it, or commits were deleted; end the other one, or start with --standby"
                )
            if last > committed.batch:
                raise StoreError(
                    f"{self._home.log_of(name)}: has output of batch {last}, and the store's "
                    f"record `progress` knows of batch {committed.batch} as the last: {OLDER}"
                )
        if published < committed.batch and not set(streams) & set(self._logged):
            self._home.fetch_staged(committed.staged)
            staging = self._home.staging
            missing = [name for name in committed.staged if not (staging / name).exists()]
            if missing and not self._is_published_in_former_logs(committed.batch):
                raise StoreError(
                    f"{staging / missing[0]}: is missing, and the output of batch "
                    f"{committed.batch} in it was not published; {GONE}"
                )

    def _is_published_in_former_logs(self, batch: int) -> bool:
        """True if a log has output of the batch: all logs are searched, also those of streams that
        the application had before."""
        place, folder = self._home.place, self._home.path / "logs"
        if place is not None:
            streams = [*folders_in(place, "logs/")]
        else:
            streams = [path.name for path in folder.glob("*") if path.is_dir()]
        former = (name for name in streams if name not in self._logs and name not in self._logged)
        return any(self._log(name).last_batch() >= batch for name in former)

    def stage(self, batch: int, reports: Iterable[Report], *, synced: bool = True) -> list[str]:
        """Stages the rows that came with the reports; tasks have staged larger outputs.

        Returns the names of all files of the batch.
        """
        names = [name for report in reports for name in report.staged]
        body = SinkRows()
        for report in reports:
            body.extend(report.rows)
        if len(body):
            names.append(f"{batch:012d}-driver.rows")
            self._home.stage(names[-1], msgspec.msgpack.encode(body), synced=synced)
        return names

    def publish(self, batch: int, names: Iterable[str], *, again: bool = False) -> None:
        """Publishes a committed batch from its staged files, and deletes the files.

        `again`, at a start: if files are missing, the last driver had published the batch. Waits
        for sinks that fail; the staged files are kept until each sink has the batch.
        """
        self.publish_all([(batch, names)], again=again)

    def publish_all(
        self, batches: Iterable[tuple[int, Iterable[str]]], *, again: bool = False
    ) -> None:
        """Publishes many batches, in rising order.

        Combines them into as few writes as their size allows, since each write costs every sink an
        fsync or more. Batches that are published together get the number of the last of them.
        """
        named = [(batch, [*names]) for batch, names in batches]
        for _, names in named:
            self._home.fetch_staged(names)
        staged = [(batch, [self._home.staging / name for name in names]) for batch, names in named]
        missing = next((path for _, paths in staged for path in paths if not path.exists()), None)
        if missing is not None and not again:
            raise StoreError(
                f"{missing}: is missing, and its output was not published; something has removed "
                "it: restore the store from a copy, or begin a new one and replay the sources"
            )
        if missing is None:
            # On a shared store, one at a time: another driver may have published some of them.
            most = TOGETHER_BYTES if self._home.place is None else 0
            for group in _together([(batch, paths) for batch, paths in staged if paths], most):
                output = Output()
                for _, paths in group:
                    output.extend(_output(paths, self._order_by))
                self._publish(group[-1][0], output)
        for _, names in named:
            self._home.drop_staged(names)

    def clear(self) -> None:
        """Removes what failed attempts left in the staging folder. Only while no batch runs."""
        for path in self._home.staging.glob("*.rows*"):
            path.unlink(missing_ok=True)

    def _publish(self, batch: int, output: Output) -> None:
        sinks: list[tuple[str, Sink, str]] = [
            (f"the log of {name!r}", self._log(name), name)
            for name in output.rows
            if name not in self._logged
        ]
        sinks += [(f"sink {name!r}", sink, name) for name, sink in self._sinks.items()]
        change_sinks: list[tuple[str, ChangeSink, str]] = [
            (f"the log of {name!r}", RowChangeSink(self._log(name), self._of_table(name)), name)
            for name in output.changes
        ]
        change_sinks += [
            (f"sink {name!r}", sink, name) for name, sink in self._change_sinks.items()
        ]
        none = SlateChanges()
        self._retry.through(
            [
                *(
                    (called, partial(sink.publish, batch, output.rows.get(name, [])))
                    for called, sink, name in sinks
                ),
                *(
                    (called, partial(sink.publish_changes, batch, output.changes.get(name, none)))
                    for called, sink, name in change_sinks
                ),
            ]
        )

    def _of_table(self, name: str) -> bool:
        return self._changes.get(name) is ENTRY_CHANGE_COLUMNS


def _together(
    staged: list[tuple[int, list[Path]]], most: int
) -> Iterator[list[tuple[int, list[Path]]]]:
    """Groups batches up to `most` bytes each; the same files give the same groups."""
    group: list[tuple[int, list[Path]]] = []
    size = 0
    for batch, paths in staged:
        length = sum(path.stat().st_size for path in paths)
        if group and size + length > most:
            yield group
            group, size = [], 0
        group.append((batch, paths))
        size += length
    if group:
        yield group


def _output(paths: list[Path], order_by: Mapping[str, str]) -> Output:
    """Reads the output of one batch from its staged files.

    Rows are in content order, or ordered by a field. Changes are in the order in which they were
    staged, since a batch has only one for each key.
    """
    bodies = [read_staged(path) for path in paths]
    output = Output()
    rows = output.rows
    for body in bodies:
        for name, changes in body.slate_changes.items():
            output.changes.setdefault(name, SlateChanges()).extend(changes)
    for stream in {name for body in bodies for name in body.outputs}:
        staged = [row for body in bodies for row in body.outputs.get(stream, ())]
        events = sorted((ts, canonical(value), key) for ts, key, value in staged)
        rows[stream] = [event_row(ts, key, decode_value(value)) for ts, value, key in events]
        if stream in order_by:
            rows[stream].sort(key=partial(_field_order, order_by[stream]))
    late = sorted(
        (ts, stream, canonical(value), key)
        for body in bodies
        for stream, ts, key, value in body.late_events
    )
    rows["late"] = [
        {"stream": stream, **event_row(ts, key, decode_value(value))}
        for ts, stream, value, key in late
    ]
    dropped = sorted(
        (ts, function, stream, canonical(value), key)
        for body in bodies
        for function, stream, ts, key, value in body.dropped_events
    )
    rows["dropped"] = [
        {"function": function, "stream": stream, **event_row(ts, key, decode_value(value))}
        for ts, function, stream, value, key in dropped
    ]
    letters = [sink_row(letter) for body in bodies for letter in body.letters]
    rows["deadletters"] = sorted(letters, key=_letter_order)
    return output


def _field_order(name: str, row: dict[str, Any]) -> tuple[float, str]:
    """Sort key: the field's number, then the key; values without a number come first."""
    value = row["value"]
    number = value.get(name) if isinstance(value, dict) else None
    return number if isinstance(number, int | float) else -inf, row["key"]


def _letter_order(letter: dict[str, Any]) -> tuple[Any, ...]:
    place = (letter["file"] or "", letter["line"] or 0)
    return letter["ts"], letter["function"] or "", letter["key"], *place, letter["error"]
