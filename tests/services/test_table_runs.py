"""Whole runs whose slates are also a table of a real server."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pytest
from sinks.databases import cassandra_database, postgres_database

import millstream as ms
from fault_runs.table_app import orders, table_app, totals
from millstream.driver.in_process import run
from millstream.settings.settings import Settings

pytestmark = pytest.mark.services


@pytest.mark.parametrize("kind", ["postgres", "cassandra"])
def test_a_server_that_is_away_is_waited_for(
    kind: str, request: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Away at the start of the run, it gets everything once it is back; and its password is in
    nothing that the run says or keeps."""
    server = request.getfixturevalue(kind)
    for name, value in server.environ.items():
        monkeypatch.setenv(name, value)
    database = (postgres_database if kind == "postgres" else cassandra_database)(server)
    given = orders(Random(1), 0, 400)
    (tmp_path / "in").mkdir()
    lines = "".join(json.dumps(order) + "\n" for order in given)
    (tmp_path / "in" / "a.jsonl").write_text(lines)
    said: list[str] = []
    waits = threading.Event()

    def say(sentence: str) -> None:
        said.append(sentence)
        waits.set()

    def back() -> None:
        waits.wait(60)
        server.restart()

    settings = Settings.of(
        "totals",
        tmp_path / "store",
        {"orders": f"json:{tmp_path / 'in'}"},
        {"totals": database.address},
        shards=2,
        tasks=2,
        batch_bytes=4_000,
        available_now=True,
    )
    server.kill()
    restarting = threading.Thread(target=back)
    restarting.start()
    try:
        run(table_app(), settings, say=say)
    finally:
        waits.set()
        restarting.join()
    assert {row["key"]: row["slate"] for row in database.read("key, slate")} == totals(given)
    assert "trying again" in said[0]
    assert "works again" in said[-1]
    if kind == "postgres":  # Cassandra's own user and password are one word
        kept = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
        assert server.password.encode() not in kept
        assert server.password not in "".join(said)


@dataclass
class Bill:
    """The declared type of an event's value."""

    amount: float
    paid: bool = False


@pytest.mark.parametrize("kind", ["postgres", "cassandra"])
def test_a_declared_output_has_columns(
    kind: str, request: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`app.output(..., value=Bill)` gives a table with the fields of a Bill, for other programs."""
    server = request.getfixturevalue(kind)
    for name, value in server.environ.items():
        monkeypatch.setenv(name, value)
    database = (postgres_database if kind == "postgres" else cassandra_database)(server)
    app = ms.App("billing")
    app.source("orders", key="customer", ts="ts", unit="us")
    app.output("bills", value=Bill)

    @app.map("orders", publishes="bills")
    def bill(event: Any) -> Any:
        yield ms.emit(value={"amount": event.value["amount"], "paid": event.value["amount"] > 5})

    (tmp_path / "in").mkdir()
    orders_given = [{"customer": f"c{n}", "ts": n, "amount": n / 2} for n in range(20)]
    (tmp_path / "in" / "a.jsonl").write_text("".join(f"{json.dumps(o)}\n" for o in orders_given))
    settings = Settings.of(
        "billing",
        tmp_path / "store",
        {"orders": f"json:{tmp_path / 'in'}"},
        {"bills": database.address},
        shards=2,
        available_now=True,
    )
    run(app, settings)
    rows = {row["key"]: row for row in database.read("key, amount, paid, value")}
    assert rows == {
        f"c{n}": {"key": f"c{n}", "amount": n / 2, "paid": n > 10, "value": None} for n in range(20)
    }
