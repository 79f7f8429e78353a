"""From staged output to the sinks.

The output of a batch is staged durably before the batch is committed, and published after it, in
content order. Which files are a batch's is recorded with its commit, so what a failed try staged is
never published. The files go once every sink has the batch; so what is still there at a start is
what the last driver did not get to, and is published then. A repeat changes nothing. The next batch
may be staged while one is published.

Every output stream goes to an event log in the store, where it can be tailed, and so do late events
and dead letters; a sink that the settings name is one more copy. A source that reads a log is there
already, and is not written to.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import msgspec

from millstream.codec import canonical, decode_value
from millstream.driver.recovery import GONE, OLDER
from millstream.driver.sink_retry import SinkRetry
from millstream.durable import with_checksum, write_unsynced, write_whole
from millstream.engine.progress import Report, event_row, read_staged, sink_row
from millstream.errors import StoreError
from millstream.log.retention import Retention
from millstream.sinks.columns import (
    DEADLETTER_COLUMNS,
    DROPPED_COLUMNS,
    EVENT_COLUMNS,
    LATE_COLUMNS,
)
from millstream.sinks.files import FileSink
from millstream.sinks.log_sink import LogSink
from millstream.sinks.tables import TableSink
from millstream.sources.address import LOG, SQLITE, Address
from millstream.stores.home import Home
from millstream.stores.progress import Progress

FOR_EVER = Retention(None, None)
TOGETHER_BYTES = 8 * 1024 * 1024
"""Staged output of several batches that is published at once, about."""
COLUMNS = {
    "deadletters": DEADLETTER_COLUMNS,
    "late": LATE_COLUMNS,
    "dropped": DROPPED_COLUMNS,
}


class Sink(Protocol):
    """Takes the rows of batches, in rising order; the last one perhaps twice."""

    def publish(self, batch: int, rows: list[dict[str, Any]]) -> None: ...

    def close(self) -> None: ...


class Publisher:
    """Stages and publishes the output of batches; the sinks know them by `query`, and a number."""

    def __init__(
        self,
        home: Home,
        query: str,
        sinks: dict[str, Address],
        retention: Retention,
        logged: Collection[str],
        retry: SinkRetry,
    ) -> None:
        """`retention` is for the logs of outputs; late events and dead letters stay for ever.

        `logged` are the streams that are read from a log; a sink that fails is tried again as
        `retry` says.
        """
        self._retry = retry
        self._home = home
        self._logged = logged
        self._retention = retention
        self._query = query
        self._logs: dict[str, LogSink] = {}
        self._sinks: dict[str, Sink] = {}
        for name, address in sinks.items():
            own = os.path.realpath(home.log_of(name))
            if os.path.realpath(address.path) != own:  # else it is what we do anyway
                self._sinks[name] = self._opened(name, address)

    def close(self) -> None:
        """Let go of all sinks."""
        for sink in (*self._logs.values(), *self._sinks.values()):
            sink.close()

    def _opened(self, name: str, address: Address) -> Sink:
        columns = COLUMNS.get(name, EVENT_COLUMNS)
        if address.format == LOG:
            return LogSink(Path(address.path), self._query, columns, self._retention)
        if address.format == SQLITE:
            return TableSink(address.path, self._query, name)
        return FileSink(address.path, address.format, self._query, columns, name=name)

    def _log(self, name: str) -> LogSink:
        """The stream's own log."""
        if name not in self._logs:
            kept = FOR_EVER if name in COLUMNS else self._retention
            columns = COLUMNS.get(name, EVENT_COLUMNS)
            self._logs[name] = LogSink(self._home.log_of(name), self._query, columns, kept)
        return self._logs[name]

    def check(self, streams: Collection[str], committed: Progress) -> None:
        """Refuse a store whose own logs have output of a batch after the last committed one: its
        record of that is an older one, and another batch of that number would not be published.
        And one whose last batch was not published, and whose staged output is gone.

        Changes nothing. StoreError, or LogError if a log is damaged.
        """
        published = -1
        for name in {*streams, *COLUMNS} - set(self._logged):
            last = self._log(name).last_batch()
            published = max(published, last)
            if last > committed.batch:
                raise StoreError(
                    f"{self._home.log_of(name)}: has output of batch {last}, and the store's "
                    f"record `progress` knows of batch {committed.batch} as the last: {OLDER}"
                )
        if published < committed.batch and not set(streams) & set(self._logged):
            for name in committed.staged:
                if not (self._home.staging / name).exists():
                    raise StoreError(
                        f"{self._home.staging / name}: is missing, and the output of batch "
                        f"{committed.batch} in it was not published; {GONE}"
                    )

    def stage(self, batch: int, reports: Iterable[Report], *, synced: bool = True) -> list[str]:
        """Keep the rows that came with the reports; larger outputs were staged by their tasks.

        Gives the names of all files of the batch.
        """
        names = [name for report in reports for name in report.staged]
        inline = [r for r in reports if r.has_rows]
        if inline:
            body = Report()
            for report in inline:
                for stream, rows in report.outputs.items():
                    body.outputs.setdefault(stream, []).extend(rows)
                body.late_events.extend(report.late_events)
                body.letters.extend(report.letters)
                body.dropped_events.extend(report.dropped_events)
            names.append(f"{batch:012d}-driver.rows")
            write = write_whole if synced else write_unsynced
            data = with_checksum(msgspec.msgpack.encode(body))
            write(self._home.staging / names[-1], data)
        return names

    def publish(self, batch: int, names: Iterable[str], *, again: bool = False) -> None:
        """Publish a committed batch from its staged files, which go then.

        `again`, at a start: files that are gone mean that the last driver had published it.

        Waits for sinks that fail; what is staged stays until each of them has it.
        """
        self.publish_all([(batch, names)], again=again)

    def publish_all(
        self, batches: Iterable[tuple[int, Iterable[str]]], *, again: bool = False
    ) -> None:
        """The same for many batches, in rising order.

        As few times as their size allows: each is an fsync or more of every sink. What is published
        together is published as the last of its batches.
        """
        staged = [
            (batch, [self._home.staging / name for name in names]) for batch, names in batches
        ]
        gone = next((path for _, paths in staged for path in paths if not path.exists()), None)
        if gone is not None and not again:
            raise StoreError(
                f"{gone}: is missing, and its output was not published; something has removed it: "
                "restore the store from a copy, or begin a new one and replay the sources"
            )
        if gone is None:
            for together in _together([(batch, paths) for batch, paths in staged if paths]):
                rows: dict[str, list[dict[str, Any]]] = {}
                for _, paths in together:
                    for stream, found in _rows(paths).items():
                        rows.setdefault(stream, []).extend(found)
                self._publish(together[-1][0], rows)
        for _, paths in staged:
            for path in paths:
                path.unlink(missing_ok=True)

    def clear(self) -> None:
        """Remove what tries that failed have left in the staging folder; while no batch runs."""
        for left in self._home.staging.glob("*.rows*"):
            left.unlink(missing_ok=True)

    def _publish(self, batch: int, rows: dict[str, list[dict[str, Any]]]) -> None:
        into: list[tuple[str, Sink, str]] = [
            (f"the log of {name!r}", self._log(name), name)
            for name in rows
            if name not in self._logged
        ]
        into += [(f"sink {name!r}", sink, name) for name, sink in self._sinks.items()]
        self._retry.through(
            [
                (called, partial(sink.publish, batch, rows.get(name, [])))
                for called, sink, name in into
            ]
        )


def _together(staged: list[tuple[int, list[Path]]]) -> Iterator[list[tuple[int, list[Path]]]]:
    """Batches in groups that are not too large; the same groups for the same files."""
    group: list[tuple[int, list[Path]]] = []
    size = 0
    for batch, paths in staged:
        length = sum(path.stat().st_size for path in paths)
        if group and size + length > TOGETHER_BYTES:
            yield group
            group, size = [], 0
        group.append((batch, paths))
        size += length
    if group:
        yield group


def _rows(paths: list[Path]) -> dict[str, list[dict[str, Any]]]:
    """The rows of one batch by stream, in content order."""
    bodies = [read_staged(path) for path in paths]
    rows: dict[str, list[dict[str, Any]]] = {}
    for stream in {name for body in bodies for name in body.outputs}:
        found = [row for body in bodies for row in body.outputs.get(stream, ())]
        events = sorted((ts, canonical(value), key) for ts, key, value in found)
        rows[stream] = [event_row(ts, key, decode_value(value)) for ts, value, key in events]
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
    return rows


def _letter_order(letter: dict[str, Any]) -> tuple[Any, ...]:
    place = (letter["file"] or "", letter["line"] or 0)
    return letter["ts"], letter["function"] or "", letter["key"], *place, letter["error"]
