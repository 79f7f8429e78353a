"""Tables as sinks: one behaviour over SQLite, PostgreSQL and Cassandra."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from sinks.databases import Database, cassandra_database, postgres_database, sqlite_database

from millstream.databases import cassandra, postgres
from millstream.databases.options import database_options
from millstream.errors import DefinitionError, StoreError
from millstream.model.slate import Table
from millstream.settings.setting_values import check_address
from millstream.slate_changes import SlateChanges
from millstream.sources.address import parse_address

SERVERS = [
    pytest.param("postgres", marks=pytest.mark.services),
    pytest.param("cassandra", marks=pytest.mark.services),
]


@dataclass
class Visits:
    """A slate whose fields are columns."""

    count: int = 0
    mean: float = 0.0
    name: str | None = None
    known: bool = False
    tags: list[str] = field(default_factory=list)


def opened(kind: str, request: Any, tmp_path: Path) -> Database:
    if kind == "sqlite":
        return sqlite_database(tmp_path)
    server = request.getfixturevalue(kind)
    for name, value in server.environ.items():
        request.getfixturevalue("monkeypatch").setenv(name, value)
    return (postgres_database if kind == "postgres" else cassandra_database)(server)


@pytest.fixture(params=["sqlite", *SERVERS])
def database(request: Any, tmp_path: Path) -> Database:
    """Each database, for changes of slates."""
    return opened(request.param, request, tmp_path)


@pytest.fixture(params=SERVERS)
def service(request: Any, tmp_path: Path) -> Database:
    """Each database that is a service."""
    return opened(request.param, request, tmp_path)


def changes(*given: tuple[str, bytes | None, int], entry: str = "") -> SlateChanges:
    """Changes of (key, slate, batch)."""
    made = SlateChanges()
    for key, slate, batch in given:
        made.add(key, entry, slate, 1_000_000 * batch, batch)
    return made


def slates(database: Database) -> dict[str, Any]:
    return {row["key"]: row["slate"] for row in database.read("key, slate")}


def test_changes_put_and_delete(database: Database) -> None:
    """The table has the slates as of the last batch; those that are gone are not in it."""
    sink = database.sink(slate=dict)
    sink.publish_changes(0, changes(("a", b'{"n":1}', 0), ("b", b'{"n":"\\u00e9"}', 0)))
    sink.publish_changes(1, changes(("a", b'{"n":2}', 1), ("b", None, 1), ("c", b"{}", 1)))
    assert slates(database) == {"a": {"n": 2}, "c": {}}
    sink.publish_changes(2, changes(("b", b'{"n":3}', 2), ("c", None, 2), ("never", None, 2)))
    assert slates(database) == {"a": {"n": 2}, "b": {"n": 3}}
    sink.close()


def test_several_batches_at_once(database: Database) -> None:
    """If batches are published together, the last change of a key remains."""
    sink = database.sink(slate=dict)
    together = changes(("a", b'{"n":1}', 0), ("b", b"{}", 0), ("a", None, 1), ("b", b"[1]", 2))
    sink.publish_changes(2, together)
    assert slates(database) == {"b": [1]}
    sink.close()


def test_a_repeat_and_an_older_batch_change_nothing(database: Database) -> None:
    """Also by another connection, as of a driver that was thought dead and still writes."""
    first, zombie = database.sink(slate=dict), database.sink(slate=dict)
    first.publish_changes(4, changes(("a", b'{"n":4}', 4), ("b", b'{"n":4}', 4)))
    first.publish_changes(5, changes(("a", b'{"n":5}', 5), ("b", None, 5)))
    zombie.publish_changes(4, changes(("a", b'{"n":4}', 4), ("b", b'{"n":4}', 4)))
    again = database.sink(slate=dict)
    again.publish_changes(5, changes(("a", b'{"n":0}', 5)))
    assert slates(database) == {"a": {"n": 5}}
    for sink in (first, zombie, again):
        sink.close()


def test_fields_are_columns(database: Database) -> None:
    """A dataclass has a column for each field, of its type; what is none of them is JSON."""
    sink = database.sink(slate=Visits)
    sink.publish_changes(
        0,
        changes(
            ("a", b'{"count":3,"mean":0.5,"name":"Ann","known":true,"tags":["x"]}', 0),
            ("b", b'{"count":1,"mean":2,"name":"Bo","known":false,"tags":[]}', 0),
        ),
    )
    sink.publish_changes(
        1, changes(("b", b'{"count":2,"mean":2,"name":null,"known":true,"tags":[]}', 1))
    )
    rows = {row["key"]: row for row in database.read("key, count, mean, name, known, tags")}
    assert rows == {
        "a": {"key": "a", "count": 3, "mean": 0.5, "name": "Ann", "known": 1, "tags": ["x"]},
        "b": {"key": "b", "count": 2, "mean": 2.0, "name": None, "known": 1, "tags": []},
    }
    sink.close()


def test_a_field_more_is_a_column_more(database: Database) -> None:
    """An application with a new field continues with its table."""

    @dataclass
    class More(Visits):
        city: str = ""

    database.sink(slate=Visits).close()
    sink = database.sink(slate=More)
    slate = b'{"count":3,"mean":0.5,"name":"Ann","known":true,"tags":["x"],"city":"Rome"}'
    sink.publish_changes(0, changes(("a", slate, 0)))
    assert database.read("key, city") == [{"key": "a", "city": "Rome"}]
    sink.close()


def test_a_number_that_no_column_holds(database: Database) -> None:
    """The error names the key and the field."""
    sink = database.sink(slate=Visits)
    with pytest.raises(StoreError, match=r"the slate of 'a' must fit its columns: .*count"):
        sink.publish_changes(0, changes(("a", b'{"count":9223372036854775808}', 0)))
    sink.close()


def test_entries_of_tables(database: Database) -> None:
    """A table's entries are rows of their own; a value that is bytes is in `bytes`."""
    sink = database.sink(slate=Table)
    made = SlateChanges()
    for entry, value in (("x", b"[1]"), ("y", b"\0\xff"), ("z", b"1")):
        made.add("a", entry, value, 0, 0)
    sink.publish_changes(0, made)
    sink.publish_changes(1, changes(("a", None, 1), entry="z"))
    rows = {row["entry"]: row for row in database.read("key, entry, value, bytes")}
    assert set(rows) == {"x", "y"}
    assert rows["x"]["value"] == [1]
    assert bytes(rows["y"]["bytes"]) == b"\xff"
    assert rows["y"]["value"] is None
    sink.close()


def test_another_store_is_refused(database: Database) -> None:
    """A table has one writer."""
    database.sink("store", slate=dict).close()
    with pytest.raises(StoreError, match="store 'other' cannot write where store 'store' does"):
        database.sink("other", slate=dict)


def event(key: str, ts: int, value: Any) -> dict[str, Any]:
    return {"key": key, "ts": ts, "value": value}


def test_events_are_added_once(service: Database) -> None:
    """Every event is a row, also two that are the same; a batch that comes again adds nothing."""
    sink = service.sink()
    rows = [event("a", 5, {"n": 1}), event("a", 5, {"n": 1}), event("b", 7, None)]
    sink.publish(0, rows)
    sink.publish(0, rows)
    again = service.sink()
    again.publish(0, rows)
    again.publish(1, [event("a", 3, b"\x00\xff")])
    read = service.read('key, "batch", number, value, bytes')
    found = sorted(
        ((row["batch"], row["number"], row["key"], row["value"]) for row in read),
        key=lambda one: one[:2],
    )
    assert found == [
        (0, 0, "a", {"n": 1}),
        (0, 1, "a", {"n": 1}),
        (0, 2, "b", None),
        (1, 0, "a", None),
    ]
    assert [bytes(row["bytes"]) for row in read if row["bytes"] is not None] == [b"\x00\xff"]
    sink.close()
    again.close()


def test_fields_of_events_are_columns(service: Database) -> None:
    """Events with a declared type have columns. A value that does not fit is stored whole in
    `value`, and is no error."""
    sink = service.sink(value=Visits)
    fits = {"count": 3, "mean": 0.5, "name": "Ann", "known": True, "tags": ["x"], "more": 1}
    other = {"count": "three", "mean": 1.0}
    given = [fits, {"count": 4}, other, 17, b"\xff"]
    sink.publish(0, [event(str(number), number, value) for number, value in enumerate(given)])
    names = ("count", "mean", "name", "known", "tags", "value", "bytes")
    read = {row["key"]: row for row in service.read(f"key, {', '.join(names)}")}
    rows = {key: tuple(row[name] for name in names) for key, row in read.items()}
    none = (None,) * 5
    assert rows["0"] == (3, 0.5, "Ann", True, ["x"], None, None)
    assert rows["1"] == (4, None, None, None, None, None, None)
    assert rows["2"] == (*none, other, None)
    assert rows["3"] == (*none, 17, None)
    assert rows["4"][:6] == (*none, None)
    assert bytes(rows["4"][6]) == b"\xff"
    sink.close()


def test_a_field_that_has_a_columns_name(service: Database) -> None:
    """The sink is refused, with advice."""

    @dataclass
    class Order:
        number: int

    with pytest.raises(
        DefinitionError, match=r"'number' of Order cannot be a column.*columns=json"
    ):
        service.sink(value=Order)


def test_times(service: Database) -> None:
    """PostgreSQL has timestamps with a zone, Cassandra microseconds."""
    ts = 1_700_000_000_123_456
    sink = service.sink()
    sink.publish(0, [event("a", ts, 1)])
    [row] = service.read("ts")
    assert (row["ts"] if service.kind == "cassandra" else round(row["ts"].timestamp() * 1e6)) == ts
    sink.close()


def test_what_databases_do_not_hold(service: Database) -> None:
    """Zero characters and very long keys do not stop an application."""
    sink = service.sink(slate=dict)
    long = "k" * 70_000
    sink.publish_changes(
        0,
        changes((long, b"{}", 0), (long + "x", b"{}", 0), ("z\0", b'{"a":"\\u0000\\\\u0000"}', 0)),
    )
    found = slates(service)
    assert len(found) == 3
    last = next(slate for key, slate in found.items() if key.startswith("z"))
    assert last in ({"a": "\ufffd\\u0000"}, {"a": "\0\\u0000"})
    sink.publish_changes(1, changes((long, None, 1)))
    assert len(slates(service)) == 2
    sink.close()


def test_many_changes(service: Database) -> None:
    """More than go together in one message."""
    sink = service.sink(slate=dict)
    sink.publish_changes(0, changes(*((f"k{i}", b'{"n":%d}' % i, 0) for i in range(3_000))))
    sink.publish_changes(1, changes(*((f"k{i}", None, 1) for i in range(0, 3_000, 2))))
    assert slates(service) == {f"k{i}": {"n": i} for i in range(1, 3_000, 2)}
    sink.close()


def test_a_table_of_somebody_else(service: Database) -> None:
    """A foreign table is never written to, nor is one created where a foreign one was removed."""
    sink = service.sink(slate=dict)
    sink.publish_changes(0, changes(("a", b"{}", 0)))
    sink.close()
    run_statement(service, "DROP TABLE {table}")
    with pytest.raises(StoreError, match="the table is gone, and batches up to 0 were in it"):
        service.sink(slate=dict)
    run_statement(service, "DELETE FROM {record} WHERE table_name = '{name}'")
    run_statement(service, "CREATE TABLE {table} (key text PRIMARY KEY)")
    with pytest.raises(StoreError, match="a table of that name that Millstream did not create"):
        service.sink(slate=dict)


def run_statement(service: Database, statement: str) -> None:
    """As an administrator does by hand."""
    address = parse_address(service.address)
    table = address.path
    prefix = f"{table.split('.')[0]}." if "." in table else ""
    text = statement.format(
        table=table, name=table.split(".")[-1], record=f"{prefix}millstream_published"
    )
    options = database_options(address.format, table, dict(address.options), "")
    if service.kind == "postgres":
        with postgres.connect(options, autocommit=True) as connection:
            connection.execute(text.encode())
    else:
        opened = cassandra.connect(options)
        opened.session.execute(text)
        opened.close()


@pytest.mark.services
def test_time_to_live(request: Any, tmp_path: Path, monkeypatch: Any) -> None:
    """Rows of Cassandra end by themselves."""
    server = request.getfixturevalue("cassandra")
    for name, value in server.environ.items():
        monkeypatch.setenv(name, value)
    database = cassandra_database(server, "&ttl=1h&consistency=one")
    sink = database.sink(slate=dict)
    sink.publish_changes(0, changes(("a", b"{}", 0)))
    [row] = database.read("ttl(slate) AS left, writetime(slate) AS written")
    assert 3_500 < row["left"] <= 3_600
    assert row["written"] == 1
    sink.close()


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("cassandra:shop.t", "server must name one node"),
        ("cassandra:t?server=a", "must name KEYSPACE.TABLE"),
        ("cassandra:s.t?server=a&consistency=most", "consistency must be one of ONE, "),
        ("cassandra:s.t?server=a&ttl=0s", "ttl must be from 1s to 7300d"),
        ("postgres:t?pasword=env:X", "'pasword' is not an option; did you mean 'password'"),
        ("postgres:t?server=a:99999", "server must be HOST, HOST:PORT"),
        ("postgres:a.b.c", "must name TABLE or SCHEMA.TABLE"),
    ],
)
def test_addresses_that_are_wrong(address: str, message: str) -> None:
    """Found before anything is opened."""
    with pytest.raises(DefinitionError, match=message):
        check_address(address, "sink 'out'", sink=True, stream="out")


def test_a_password_in_an_address_is_refused_and_not_shown() -> None:
    """It belongs into a variable or a file."""
    with pytest.raises(DefinitionError, match="env:VARIABLE or file:PATH") as error:
        check_address("postgres:t?password=s3cret", "sink 'out'", sink=True, stream="out")
    assert "s3cret" not in str(error.value)
