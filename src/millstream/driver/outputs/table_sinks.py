"""Opens the database table for an output's address."""

from __future__ import annotations

from collections.abc import Mapping

from millstream.databases.options import CASSANDRA, POSTGRES, database_options
from millstream.errors import DefinitionError
from millstream.model.slate import Table
from millstream.sinks.cassandra_table import CassandraTable
from millstream.sinks.postgres_table import PostgresTable
from millstream.sinks.sqlite_table import sqlite_sink
from millstream.sinks.table_layout import ENTRIES, LATEST, TableLayout, event_layout, slate_layout
from millstream.sinks.tables import TableSink
from millstream.sources.address import SQLITE, Address

TABLES = (SQLITE, POSTGRES, CASSANDRA)
"""The address formats that name a table."""


def check_own_tables(sinks: Mapping[str, Address]) -> None:
    """Raises DefinitionError if two outputs have one table.

    A table records one last batch, so a batch of the second output would count as written. SQLite
    names the tables after the outputs.
    """
    taken: dict[tuple[str | None, ...], str] = {}
    for name, address in sinks.items():
        if address.format not in (POSTGRES, CASSANDRA):
            continue
        where = address.format, address.path, address.option("server"), address.option("database")
        other = taken.setdefault(where, name)
        if other != name:
            raise DefinitionError(
                f"sink {name!r}: must have a table of its own; got {address.format}:{address.path},"
                f" as sink {other!r} has; name another table"
            )


def opened_table(
    name: str, address: Address, query: str, slate: type | None = None, value: type | None = None
) -> TableSink:
    """Opens the table of an output.

    With `slate`, the output has changes of slates of that type. Otherwise it has events; `value` is
    the declared type of their values, if any.
    """
    where = f"sink {name!r}"
    if address.format == SQLITE:
        layout = LATEST if slate is None else _changes_layout(slate, where, typed=True)
        return sqlite_sink(address.path, query, name, layout)
    options = database_options(address.format, address.path, dict(address.options), where)
    if slate is None:
        layout = event_layout(value, where, typed=options.typed)
    else:
        layout = _changes_layout(slate, where, typed=options.typed)
    if address.format == POSTGRES:
        return TableSink(PostgresTable(options, query, layout), wait=True)
    return TableSink(CassandraTable(options, query, layout), wait=True)


def _changes_layout(slate: type, where: str, *, typed: bool) -> TableLayout:
    return ENTRIES if slate is Table else slate_layout(slate, where, typed=typed)
