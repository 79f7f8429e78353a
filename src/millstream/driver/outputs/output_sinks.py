"""Opens the sink for an output's address, for events and for changes of slates.

Sinks of events take rows. Sinks of changes take columns, since a batch may change very many slates:
a sink that can do better than one row for each change implements `publish_changes`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from millstream.column_types import record_type
from millstream.driver.outputs.table_sinks import TABLES, opened_table
from millstream.errors import DefinitionError
from millstream.kafka.sink_topic import sink_topic
from millstream.log.retention import Retention
from millstream.model.slate import Table
from millstream.model.workflow import Workflow
from millstream.sinks.columns import (
    CHANGE_COLUMNS,
    DEADLETTER_COLUMNS,
    DROPPED_COLUMNS,
    ENTRY_CHANGE_COLUMNS,
    EVENT_COLUMNS,
    LATE_COLUMNS,
    Columns,
)
from millstream.sinks.files import FileSink
from millstream.sinks.kafka_sink import KafkaSink
from millstream.sinks.log_sink import LogSink
from millstream.sinks.parquet_columns import taken_name
from millstream.sinks.row_files import DELETED
from millstream.slate_changes import SlateChanges
from millstream.sources.address import KAFKA, LOG, PARQUET, Address

OWN_COLUMNS = {
    "deadletters": DEADLETTER_COLUMNS,
    "late": LATE_COLUMNS,
    "dropped": DROPPED_COLUMNS,
}
"""The columns of Millstream's own outputs."""


class Sink(Protocol):
    """Takes the rows of batches, in rising order; the last batch may come twice.

    `publish` raises SinkError if it cannot write now, and is then retried. When it returns, the
    rows are durable.
    """

    def publish(self, batch: int, rows: list[dict[str, Any]]) -> None: ...

    def close(self) -> None: ...


class ChangeSink(Protocol):
    """Takes changes of slates, with the same contract as Sink.

    The changes may come from several batches, of which `batch` is the last: each change names its
    own batch.
    """

    def publish_changes(self, batch: int, changes: SlateChanges) -> None: ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class RowChangeSink:
    """Writes changes to a sink of rows, one row for each change."""

    sink: Sink
    entries: bool
    """True if the changes are of a table's entries."""

    def publish_changes(self, batch: int, changes: SlateChanges) -> None:
        self.sink.publish(batch, changes.rows(entries=self.entries))

    def close(self) -> None:
        self.sink.close()


def change_columns(workflow: Workflow) -> dict[str, Columns]:
    """Returns the columns of each output of changes."""
    tables = {update.name for update in workflow.updates if update.slate is Table}
    return {
        changes.name: ENTRY_CHANGE_COLUMNS if changes.update in tables else CHANGE_COLUMNS
        for changes in workflow.changes
    }


def slate_types(workflow: Workflow) -> dict[str, type]:
    """Returns, for each output of changes, the type of its slates."""
    types = {update.name: update.slate for update in workflow.updates}
    return {changes.name: types[changes.update] for changes in workflow.changes}


def value_types(workflow: Workflow) -> dict[str, type]:
    """Returns the types that streams declare for their events' values."""
    return {stream.name: stream.value for stream in workflow.declared if stream.value is not None}


def columns_of(name: str, changes: Mapping[str, Columns]) -> Columns:
    """Returns the columns of an output; `changes` has the columns of outputs of changes."""
    return changes.get(name) or OWN_COLUMNS.get(name, EVENT_COLUMNS)


def opened_sink(
    name: str, address: Address, query: str, retention: Retention, value: type | None = None
) -> Sink:
    """Opens the sink of an output of events.

    `query` and a number identify a batch. `value` is the type of the events' values, if declared.
    """
    if address.format in TABLES:
        return opened_table(name, address, query, value=value)
    columns = columns_of(name, {})
    if address.format == KAFKA:
        return KafkaSink(sink_topic(address.path, address.options), query, name, columns)
    return _row_sink(name, address, query, retention, columns, value)


def opened_change_sink(
    name: str,
    address: Address,
    query: str,
    retention: Retention,
    columns: Columns,
    slate: type = dict,
) -> ChangeSink:
    """Opens the sink of an output of changes, whose slates have the type `slate`."""
    entries = columns is ENTRY_CHANGE_COLUMNS
    if address.format == KAFKA:
        return KafkaSink(sink_topic(address.path, address.options), query, name, columns)
    if address.format in TABLES:
        return opened_table(name, address, query, Table if entries else slate)
    kind = None if entries else slate
    return RowChangeSink(_row_sink(name, address, query, retention, columns, kind), entries)


def _row_sink(
    name: str,
    address: Address,
    query: str,
    retention: Retention,
    columns: Columns,
    value: type | None,
) -> Sink:
    if address.format == LOG:
        return LogSink(Path(address.path), query, columns, retention)
    record = None
    if value is not None and address.format == PARQUET and not address.options:
        record = record_type(value)
    if record is not None:
        own = [column.name for column in columns if column.kind != "value"]
        taken = taken_name(record, own if columns is EVENT_COLUMNS else [*own, DELETED])
        if taken is not None:
            raise DefinitionError(
                f"sink {name!r}: the field {taken!r} cannot be a column, since there is one of "
                f"that name; rename the field, or write {address}?columns=json for JSON text"
            )
    return FileSink(address.path, address.format, query, columns, name=name, record=record)
