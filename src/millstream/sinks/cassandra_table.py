"""A table of Cassandra: `cassandra:KEYSPACE.TABLE?server=HOST:PORT,...&consistency=QUORUM&ttl=7d`.

Cassandra has no transactions over rows, and needs none here: every write carries its batch's number
as the time of writing (USING TIMESTAMP), by which Cassandra itself decides between two writes. So
the same batch again changes nothing, and an older one never overwrites a newer one, in whatever
order they arrive, from whatever driver. The batch is recorded in `millstream_published` after all
of its rows are acknowledged with the requested consistency. Readers may see a batch in part.

Statements are prepared, and many are in flight at once. Up to thirty rows on the same node go into
one unlogged batch: it guarantees no more than separate writes do, and costs the client and the node
far fewer messages. Past ten rows a node logs a warning, at most once a minute, which is meant for
batches with rows on several nodes. A key of more than 60,000 bytes, which Cassandra does not
accept, is cut and ends with the hash of the whole key.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable, Iterator
from typing import Any, TypeVar

from millstream.databases import cassandra
from millstream.databases.cassandra import Opened
from millstream.databases.options import DatabaseOptions, quoted
from millstream.errors import StoreError
from millstream.sinks.table_layout import ColumnKind, TableLayout, TableRows
from millstream.sinks.tables import RECORD, Noted, check_owner, fitted

MOST_KEY = 60_000
TOGETHER_ROWS = 30
"""The maximum number of rows of a message. Warm and in one run, 10, 30 and 50 wrote 11,700, 15,800
and 16,100 rows a second."""
TOGETHER_BYTES = 4_000
"""The maximum number of bytes of a message; a node logs a warning for each that exceeds 5 KiB."""
UNDER_WAY = 64
"""The maximum number of messages that are not acknowledged yet."""
T = TypeVar("T")
_TYPES: dict[ColumnKind, str] = {
    "text": "text",
    "integer": "bigint",
    "real": "double",
    "boolean": "boolean",
    "json": "text",
    "bytes": "blob",
    "time": "bigint",
    "moment": "timestamp",
    "day": "date",
    "clock": "time",
    "decimal": "decimal",
    "uuid": "uuid",
}


class CassandraTable:
    """A table and the session that writes to it."""

    advice = "make sure that enough nodes run, can be reached and let this user write there"
    is_passing = staticmethod(cassandra.is_passing)

    def __init__(self, options: DatabaseOptions, query: str, layout: TableLayout) -> None:
        cassandra.client(options.shown)
        self.shown = options.shown
        self._options = options
        self._query = query
        self.layout = self._declared = layout
        self._keyspace = options.schema or ""
        self._table = f"{quoted(self._keyspace)}.{quoted(options.table)}"
        self._record = f"{quoted(self._keyspace)}.{quoted(RECORD)}"
        self._opened: Opened | None = None
        self._put: Any = None
        self._delete: Any = None
        self._note: Any = None

    def open(self) -> int:
        self.close()
        opened = self._opened = cassandra.connect(self._options)
        last = self._make(opened)
        self._prepare(opened.session)
        return last

    def write(self, batch: int, rows: TableRows) -> None:
        assert self._opened is not None
        self._send(self._opened, self._statements(rows))
        self._opened.session.execute(self._note, (batch + 1, batch, self._options.table))

    def close(self) -> None:
        opened, self._opened = self._opened, None
        if opened is not None:
            opened.close()

    def _make(self, opened: Opened) -> int:
        """Creates what does not exist; returns the last batch."""
        session, metadata = opened.session, opened.cluster.metadata
        if self._keyspace not in metadata.keyspaces:
            if self._options.replication is None:
                raise StoreError(
                    f"sink {self.shown}: there is no keyspace {self._keyspace!r}; create it, or "
                    "set the option replication=3, which creates it with three copies"
                )
            copies = self._options.replication
            session.execute(
                f"CREATE KEYSPACE IF NOT EXISTS {quoted(self._keyspace)} WITH replication = "
                f"{{'class': 'NetworkTopologyStrategy', 'replication_factor': {copies}}}"
            )
        session.execute(
            f"CREATE TABLE IF NOT EXISTS {self._record} "
            '(table_name text PRIMARY KEY, query text, "batch" bigint)'
        )
        noted = self._noted(session)
        known = metadata.keyspaces[self._keyspace].tables.get(self._options.table)
        check_owner(self.shown, self._query, noted, known is not None)
        if noted is None:  # of two stores that start at once only one becomes the writer
            session.execute(
                f"INSERT INTO {self._record} (table_name, query) VALUES (%s, %s) IF NOT EXISTS",
                (self._options.table, self._query),
            )
            check_owner(self.shown, self._query, self._noted(session), known is not None)
        existing = {} if known is None else known.columns
        types = {name: column.cql_type for name, column in existing.items()}
        self.layout = self._declared.with_earlier_kinds(types, _TYPES)
        columns, key = self.layout.columns, self.layout.key
        defined = [f"{quoted(column.name)} {_TYPES[column.kind]}" for column in columns]
        keys = ", ".join(quoted(column.name) for column in columns[:key])
        session.execute(
            f"CREATE TABLE IF NOT EXISTS {self._table} ({', '.join(defined)}, PRIMARY KEY ({keys}))"
        )
        for column, definition in zip(columns[key:], defined[key:], strict=True):
            if known is not None and column.name not in known.columns:
                # The dataclass has a new field.
                session.execute(f"ALTER TABLE {self._table} ADD {definition}")
        return -1 if noted is None else noted.batch

    def _noted(self, session: Any) -> Noted | None:
        row = session.execute(
            f'SELECT query, "batch" FROM {self._record} WHERE table_name = %s',
            (self._options.table,),
        ).one()
        return None if row is None else Noted(row[0], -1 if row[1] is None else row[1])

    def _prepare(self, session: Any) -> None:
        names = [quoted(name) for name in self.layout.names]
        ttl = "" if self._options.ttl is None else f" AND TTL {self._options.ttl}"
        self._put = session.prepare(
            f"INSERT INTO {self._table} ({', '.join(names)}) "
            f"VALUES ({', '.join('?' * len(names))}) USING TIMESTAMP ?{ttl}"
        )
        where = " AND ".join(f"{name} = ?" for name in names[: self.layout.key])
        self._delete = session.prepare(f"DELETE FROM {self._table} USING TIMESTAMP ? WHERE {where}")
        # A condition would not be idempotent; the time of writing keeps the highest batch.
        self._note = session.prepare(
            f'UPDATE {self._record} USING TIMESTAMP ? SET "batch" = ? WHERE table_name = ?'
        )

    def _statements(self, rows: TableRows) -> Iterator[Any]:
        columns, key = self.layout.columns, self.layout.key
        texts = [number for number, column in enumerate(columns) if column.kind == "json"]
        at = self.layout.names.index("batch")
        for row in rows.put:
            values = list(row)
            for number in texts:
                if values[number] is not None:
                    values[number] = values[number].decode()
            values[0] = fitted(values[0], MOST_KEY)
            values.append(row[at] + 1)
            yield self._put.bind(values)
        for row in rows.gone:
            yield self._delete.bind((row[-1] + 1, fitted(row[0], MOST_KEY), *row[1:key]))

    def _send(self, opened: Opened, statements: Iterable[Any]) -> None:
        """Sends all, many at once; raises the first failure once none is in flight."""
        under_way: deque[Any] = deque()
        failed: Exception | None = None
        for message in self._messages(opened, statements):
            under_way.append(opened.session.execute_async(message))
            if len(under_way) >= UNDER_WAY:
                failed = failed or _failure(under_way.popleft())
            if failed is not None:
                break
        for future in under_way:
            failed = failed or _failure(future)
        if failed is not None:
            raise failed

    def _messages(self, opened: Opened, statements: Iterable[Any]) -> Iterator[Any]:
        """Yields messages, each with statements for rows on the same node."""
        from cassandra.query import BatchStatement, BatchType

        metadata, level = opened.cluster.metadata, self._put.consistency_level
        several = len(metadata.all_hosts()) > 1

        def placed(statement: Any) -> tuple[Any, int, Any]:
            key = statement.routing_key
            node = first_replica(metadata, self._keyspace, key) if several else None
            return node, sum(map(len, filter(None, statement.values))), statement

        for group in grouped_by_node(map(placed, statements)):
            batch = BatchStatement(BatchType.UNLOGGED, consistency_level=level)
            for statement in group:
                batch.add(statement)
            yield batch


def first_replica(metadata: Any, keyspace: str, routing_key: bytes) -> Hashable | None:
    """Returns the node that has a row's first copy; None while the driver does not know it."""
    replicas = metadata.get_replicas(keyspace, routing_key)
    return replicas[0].host_id if replicas else None


def grouped_by_node(placed: Iterable[tuple[Hashable, int, T]]) -> Iterator[list[T]]:
    """Groups statements by node, each given as (node, bytes, statement): those of a node in their
    order, at most TOGETHER_ROWS and TOGETHER_BYTES together, or one that is larger alone.

    >>> list(grouped_by_node([("n1", 5, "a"), ("n2", 5, "b"), ("n1", 5, "c")]))
    [['a', 'c'], ['b']]
    """
    groups: dict[Hashable, tuple[list[T], int]] = {}
    for node, size, statement in placed:
        group, total = groups.get(node, ([], 0))
        if group and (len(group) >= TOGETHER_ROWS or total + size > TOGETHER_BYTES):
            yield group
            group, total = [], 0
        group.append(statement)
        groups[node] = group, total + size
    for group, _ in groups.values():
        yield group


def _failure(future: Any) -> Exception | None:
    try:
        future.result()
    except Exception as error:
        return error
    return None
