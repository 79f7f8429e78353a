"""The databases that one behavioural suite of table sinks runs over, and how others read them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from fault_runs.database_servers import DatabaseServer
from millstream.databases import cassandra, postgres
from millstream.databases.options import database_options
from millstream.driver.outputs.table_sinks import opened_table
from millstream.sinks.tables import TableSink
from millstream.sources.address import parse_address

Rows = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Database:
    """A database with a table of its own for one test."""

    kind: str
    address: str
    """The address for a sink."""
    read: Callable[[str], Rows]
    """Reads the named columns as another program, with JSON decoded."""

    def sink(
        self,
        query: str = "store",
        slate: type | None = None,
        name: str = "out",
        value: type | None = None,
    ) -> TableSink:
        return opened_table(name, parse_address(self.address), query, slate, value)


def sqlite_database(folder: Path) -> Database:
    path = folder / "out.db"

    def read(columns: str) -> Rows:
        with closing(sqlite3.connect(path)) as connection:
            connection.row_factory = sqlite3.Row
            found = connection.execute(f'SELECT {columns} FROM "out"').fetchall()
            return [decoded(dict(row)) for row in found]

    return Database("sqlite", f"sqlite:{path}", read)


def postgres_database(server: DatabaseServer, more: str = "") -> Database:
    table = f"out_{uuid4().hex[:10]}"
    address = f"postgres:{table}?{server.options}&database=postgres{more}"

    def read(columns: str) -> Rows:
        options = dict(parse_address(address).options)
        with closing(postgres.connect(database_options("postgres", table, options, ""))) as opened:
            cursor = opened.execute(f"SELECT {columns} FROM {table}".encode())
            names = [column.name for column in cursor.description or ()]
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    return Database("postgres", address, read)


def cassandra_database(server: DatabaseServer, more: str = "") -> Database:
    table = f"shop.out_{uuid4().hex[:10]}"
    address = f"cassandra:{table}?{server.options}&replication=1{more}"

    def read(columns: str) -> Rows:
        options = dict(parse_address(address).options)
        opened = cassandra.connect(database_options("cassandra", table, options, ""))
        try:
            found = opened.session.execute(f"SELECT {columns} FROM {table}")
            return [decoded(row._asdict()) for row in found]
        finally:
            opened.close()

    return Database("cassandra", address, read)


def decoded(row: dict[str, Any]) -> dict[str, Any]:
    """JSON that a database keeps as text."""
    jsons = {name: row[name] for name in ("value", "slate", "tags") if row.get(name) is not None}
    return {**row, **{name: json.loads(text) for name, text in jsons.items()}}
