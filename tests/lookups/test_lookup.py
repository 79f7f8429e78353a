"""Lookups: cached, bounded, known to the model, a dict in tests."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from decimal import Decimal
from ipaddress import IPv4Address, IPv6Network
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from cassandra.util import Date, OrderedMap, SortedSet, Time
from psycopg.types.range import Range

import millstream as ms
from fault_runs.database_servers import DatabaseServer
from millstream import testing
from millstream.databases import cassandra as cassandra_client
from millstream.databases import postgres as postgres_client
from millstream.databases.options import database_options
from millstream.description import describe
from millstream.driver.in_process import run
from millstream.errors import DefinitionError, FunctionError, LookupFailed, RunError
from millstream.graph import text
from millstream.settings.settings import Settings
from millstream.sources.address import parse_address

CLICKS = [{"user": "ann", "at": 1}, {"user": "bo", "at": 2}, {"user": "ann", "at": 3}]


def shop(people: Any) -> ms.App:
    """Clicks, with the city of who clicked."""
    app = ms.App("shop")
    app.source("clicks", key="user", ts="at", unit="us")
    app.output("placed")

    def city_of(key: str) -> Any:
        person = people.get(key)
        return person and person["city"]

    @app.map("clicks", publishes="placed")
    def place(event: Any) -> Any:
        yield ms.emit(value=city_of(event.key))

    return app


def asked(people: Any, keys: str) -> list[Any]:
    """Returns the result of a map for a known key."""
    people.known()
    return [people.get(key) for key in keys]


def test_in_tests_it_is_a_dict() -> None:
    """An address is never asked by a test; each run has rows of its own."""
    app = shop(ms.lookup("people", "postgres:people?server=nowhere"))
    one = testing.run(app, {"clicks": CLICKS}, lookups={"people": {"ann": {"city": "Rome"}}})
    assert [event.value for event in one.stream("placed")] == ["Rome", None, "Rome"]
    two = testing.run(app, {"clicks": CLICKS}, lookups={"people": {}})
    assert [event.value for event in two.stream("placed")] == [None, None, None]
    with pytest.raises(DefinitionError, match="lookup 'people' reads another system, which a test"):
        testing.run(app, {"clicks": CLICKS})
    with pytest.raises(DefinitionError, match="no lookup 'poeple'; did you mean 'people'"):
        testing.run(app, lookups={"poeple": {}})


def test_the_model_knows_it() -> None:
    """A lookup is found through the maps that call it, and is shown without secrets."""
    app = shop(ms.lookup("people", "postgres:people?server=db&password=env:SECRET", max_age="5m"))
    workflow = app.checked()
    assert [lookup.name for lookup in workflow.lookups] == ["people"]
    assert "map, looks up people" in text(workflow)
    [place] = describe(workflow, {"clicks": "log"}).functions
    assert place.lookups == {"people": "postgres:people, at most 5m old"}


def test_only_a_map_reads_it() -> None:
    """An update that reads one is refused, and so is a read of one that no map declares."""
    people = ms.lookup("people", {"ann": 1}.get)
    app = ms.App("shop")
    app.source("clicks", key="user")

    @app.update("clicks")
    def count(event: Any, slate: Any) -> None:
        slate["city"] = people.get(event.key)

    with pytest.raises(
        DefinitionError, match=r"update 'count' .* reads the lookup 'people', and on"
    ):
        app.checked()
    with pytest.raises(FunctionError, match="no map declares it"):
        ms.lookup("hidden", {"ann": 1}.get).get("ann")


def test_answers_are_kept_and_are_ones_own() -> None:
    """Asked once within its age, also for what is not there; no more are kept than its size."""
    keys: list[str] = []

    def read(key: str) -> Any:
        keys.append(key)
        return None if key == "x" else {"name": key, "tags": []}

    people = ms.lookup("people", read, max_age="1h", max_size=2)
    first, *_ = asked(people, "axaxa")
    assert keys == ["a", "x"]
    first["tags"].append("changed")
    assert people.get("a") == {"name": "a", "tags": []}
    asked(people, "bax")
    assert keys == ["a", "x", "b", "x"]
    aged = ms.lookup("aged", read, max_age="0s")
    keys.clear()
    asked(aged, "aa")
    assert keys == ["a", "a"]


def test_the_age_of_an_answer_counts_from_the_question(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row may have changed as soon as it was read, however long its answer was on the way."""
    now, keys = 100.0, list[str]()
    monkeypatch.setattr("millstream.lookups.lookup.time.monotonic", lambda: now)

    def read(key: str) -> Any:
        nonlocal now
        keys.append(key)
        now += 8.0
        return 7

    people = ms.lookup("people", read, max_age="10s")
    asked(people, "a")
    now += 1.0
    asked(people, "a")
    assert keys == ["a"]
    now += 2.0
    asked(people, "a")
    assert keys == ["a", "a"]


def test_it_is_tried_again() -> None:
    """A failure that passes is not seen."""
    failures = [OSError("away"), OSError("away")]

    def read(key: str) -> Any:
        if failures:
            raise failures.pop()
        return 7

    assert asked(ms.lookup("people", read), "a") == [7]


def clicks(folder: Path, app: ms.App) -> Settings:
    (folder / "in").mkdir()
    (folder / "in" / "a.jsonl").write_text('{"user": "ann", "at": 1}\n{"user": "bo", "at": 2}\n')
    source = {"clicks": f"json:{folder / 'in'}"}
    return Settings.of(app.name, folder / "store", source, shards=1, tasks=1, available_now=True)


def test_a_failure_stops_the_run_and_nothing_has_happened(tmp_path: Path) -> None:
    """The batch is taken again at the next start, when the other system is back."""
    rows: dict[str, Any] = {}

    def read(key: str) -> Any:
        return rows[key]

    app = shop(ms.lookup("people", read, timeout="10ms"))
    settings = clicks(tmp_path, app)
    with pytest.raises((RunError, FunctionError), match=r"lookup 'people' \(read\(\)\), key 'ann'"):
        run(app, settings)
    rows.update(ann={"city": "Rome"}, bo={"city": "Oslo"})
    summary = run(app, settings)
    assert summary.dead_letters == 0


def test_a_failure_may_be_a_dead_letter(tmp_path: Path) -> None:
    """With that option of the lookup, the other events are processed."""
    where = {"bo": {"city": "Oslo"}}

    def read(key: str) -> Any:
        return where[key]

    app = shop(ms.lookup("people", read, timeout="10ms", on_failure="dead-letter"))
    assert run(app, clicks(tmp_path, app)).dead_letters == 1


def test_sqlite(tmp_path: Path) -> None:
    """Rows of a file that another program writes."""
    path = tmp_path / "people.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE people (id TEXT PRIMARY KEY, city TEXT)")
        connection.execute("INSERT INTO people VALUES ('ann', 'Rome')")
    people = ms.lookup("people", f"sqlite:{path}", key="id")
    people.known()
    assert people.get("ann") == {"id": "ann", "city": "Rome"}
    assert people.get("bo") is None


@pytest.mark.services
def test_postgres(postgres: DatabaseServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of a table; times and numbers as JSON carries them. It survives a restart."""
    for name, value in postgres.environ.items():
        monkeypatch.setenv(name, value)
    table = f"people_{uuid4().hex[:8]}"
    address = parse_address(f"postgres:{table}?{postgres.options}&database=postgres")
    options = database_options("postgres", table, dict(address.options), "")
    with postgres_client.connect(options, autocommit=True) as connection:
        columns = "id int PRIMARY KEY, born date, tags jsonb, host inet, net cidr, ages int4range"
        connection.execute(f"CREATE TABLE {table} ({columns})".encode())
        connection.execute(
            f"INSERT INTO {table} "
            "VALUES (7, '1999-01-02', '[1]', '10.0.0.1', '10.0.0.0/8', '[1,3)')"
        )
    people = ms.lookup("people", str(address), key="id", max_age="0s")
    people.known()
    assert people.get("7") == {
        "id": 7,
        "born": "1999-01-02",
        "tags": [1],
        "host": "10.0.0.1",
        "net": "10.0.0.0/8",
        "ages": "[1, 3)",
    }
    assert people.get("8") is None
    postgres.kill()
    postgres.restart()
    assert people.get("7")["tags"] == [1]


@pytest.mark.services
def test_cassandra(cassandra: DatabaseServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of a table whose partition key is text."""
    for name, value in cassandra.environ.items():
        monkeypatch.setenv(name, value)
    table = f"look.people_{uuid4().hex[:8]}"
    address = parse_address(f"cassandra:{table}?{cassandra.options}")
    options = database_options("cassandra", table, dict(address.options), "")
    with closing(cassandra_client.connect(options)) as opened:
        opened.session.execute(
            "CREATE KEYSPACE IF NOT EXISTS look WITH replication = "
            "{'class': 'NetworkTopologyStrategy', 'replication_factor': 1}"
        )
        opened.session.execute(
            f"CREATE TABLE {table} (key text PRIMARY KEY, city text, born date, wakes time, "
            "tags set<text>, counts map<int, int>, days set<date>, stay duration, host inet)"
        )
        opened.session.execute(
            f"INSERT INTO {table} (key, city, born, wakes, tags, counts, days, stay, host) VALUES "
            "('ann', 'Rome', '1999-01-02', '06:30:00', {'b', 'a'}, {1: 2}, {'1999-01-02'}, 1h, "
            "'10.0.0.1')"
        )
    people = ms.lookup("people", str(address))
    people.known()
    assert people.get("ann") == {
        "key": "ann",
        "city": "Rome",
        "born": "1999-01-02",
        "wakes": "06:30:00.000000000",
        "tags": ["a", "b"],
        "counts": {"1": 2},
        "days": ["1999-01-02"],
        "stay": "0mo0d3600000000000ns",
        "host": "10.0.0.1",
    }
    assert people.get("bo") is None


def test_types_of_databases_are_text_and_lists() -> None:
    """The types are those that the clients of PostgreSQL and Cassandra return for ordinary
    columns."""
    row = {
        "host": IPv4Address("10.0.0.1"),
        "net": IPv6Network("fe80::/10"),
        "ages": Range(1, 3),
        "born": Date("1999-01-02"),
        "wakes": Time("06:30:00.5"),
        "tags": SortedSet(["b", "a"]),
        "counts": OrderedMap([(Date("1999-01-02"), 1), (7, 2)]),
        "scores": [Decimal("1.5"), b"a"],
    }
    assert asked(ms.lookup("people", lambda key: row), "a") == [
        {
            "host": "10.0.0.1",
            "net": "fe80::/10",
            "ages": "[1, 3)",
            "born": "1999-01-02",
            "wakes": "06:30:00.500000000",
            "tags": ["a", "b"],
            "counts": {"1999-01-02": 1, "7": 2},
            "scores": ["1.5", "YQ=="],
        }
    ]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ({"id": 1, "at": 1j}, "column 'at' must be of a type that JSON can carry; got a value of"),
        ({"at": [{"x": 1j}]}, "column 'at' must be .*; got a value of type complex; return text"),
        (1j, "the answer must be what JSON can carry; got a value of type complex"),
    ],
)
def test_a_type_that_is_unknown_is_named_at_once(answer: Any, message: str) -> None:
    """There is no second request, since no retry would help."""
    questions: list[str] = []

    def read(key: str) -> Any:
        questions.append(key)
        return answer

    with pytest.raises(LookupFailed, match=rf"lookup 'people' \(read\(\)\), key 'a': {message}"):
        asked(ms.lookup("people", read), "a")
    assert questions == ["a"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"where": "mysql:people"}, "must be sqlite:FILE, postgres:TABLE"),
        (
            {"where": "postgres:people?passwrd=x"},
            "'passwrd' is not an option; did you mean 'password'",
        ),
        ({"where": "cassandra:s.people?server=a", "table": "x"}, "table must be left out"),
        ({"where": {}, "max_size": 0}, "max_size must be a number of answers"),
        ({"where": {}, "on_failure": "ignore"}, "on_failure must be retry or dead-letter"),
    ],
)
def test_what_is_wrong_with_a_lookup(given: dict[str, Any], message: str) -> None:
    """Found when it is declared."""
    with pytest.raises(DefinitionError, match=message):
        ms.lookup("people", **given)
