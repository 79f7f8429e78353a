"""The application whose slates are also a table of a database: totals by customer.

    python -m fault_runs.table_app FOLDER ADDRESS follow|last

follows FOLDER/in, without Spark, or processes all existing input and ends. ADDRESS is the sink's.
"""

from __future__ import annotations

import sys
from pathlib import Path
from random import Random
from typing import Any

import millstream as ms
from millstream.driver.in_process import run
from millstream.settings.settings import Settings

CUSTOMERS = 300
PATIENCE = 300_000_000
"""Microseconds to wait for a database."""
Record = dict[str, Any]
Totals = dict[str, dict[str, int]]


def table_app() -> ms.App:
    """Sums a customer's orders; forgets a customer that leaves."""
    app = ms.App("totals")
    app.source("orders", key="customer", ts="ts", unit="us")
    app.changes("total", name="totals")

    @app.update("orders")
    def total(event: Any, slate: Any) -> Any:
        if event.value["leaves"]:
            yield ms.forget()
            return
        booked(slate, event.value)

    return app


def booked(slate: dict[str, int], order: Record) -> None:
    """Adds an order to a slate; the fold depends on the sequence of orders."""
    slate["count"] = slate.get("count", 0) + 1
    slate["fold"] = (slate.get("fold", 7) * 31 + order["id"]) % 1_000_003


def orders(random: Random, first: int, count: int) -> list[Record]:
    """Orders with rising times; in one of twenty the customer leaves."""
    return [
        {
            "id": number,
            "ts": 1_700_000_000_000_000 + number,
            "customer": f"c{random.randrange(CUSTOMERS)}",
            "leaves": random.random() < 0.05,
        }
        for number in range(first, first + count)
    ]


def totals(given: list[Record]) -> Totals:
    """The expected slates after these orders."""
    found: Totals = {}
    for order in given:
        if order["leaves"]:
            found.pop(order["customer"], None)
        else:
            booked(found.setdefault(order["customer"], {}), order)
    return found


def main(folder: Path, address: str, how: str) -> None:
    settings = Settings.of(
        app="totals",
        store=folder / "store",
        sources={"orders": f"json:{folder / 'in'}"},
        sinks={"totals": address},
        shards=2,
        tasks=2,
        batch_bytes=4_000,
        sink_patience=PATIENCE,
        available_now=how == "last",
    )
    run(table_app(), settings, say=print)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
