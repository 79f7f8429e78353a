"""A sum and a mean for each key, as an update of each form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import millstream as ms
from millstream.model.workflow import Order


@dataclass
class Mean:
    """The slate of a key."""

    sum: int = 0
    count: int = 0
    mean: float = 0.0


@dataclass
class Number:
    """The columns of the events' values."""

    n: int


def _app(order: str) -> ms.App:
    app = ms.App("bench", order=cast(Order, order))
    app.source("events", key="key", ts="ts", unit="us")
    return app


def mean(order: str) -> ms.App:
    """Called for each event."""
    app = _app(order)

    @app.update("events", slate=Mean)
    def total(event: ms.Event, slate: Mean) -> None:
        slate.sum += event.value["n"]
        slate.count += 1
        slate.mean = slate.sum / slate.count

    return app


def batch_mean(order: str) -> ms.App:
    """Called for all events of a key."""
    app = _app(order)

    @app.update("events", slate=Mean, batch=True)
    def total(events: list[ms.Event], slate: Mean) -> None:
        slate.sum += sum(event.value["n"] for event in events)
        slate.count += len(events)
        slate.mean = slate.sum / slate.count

    return app


def table_mean(order: str) -> ms.App:
    """Called for many keys."""
    app = _app(order)

    @app.update("events", slate=Mean, batch=True, across_keys=True, values=Number)
    def total(events: Any, slates: Any) -> dict[str, Any]:
        import numpy as np

        rows, size = events["row"].to_numpy(), len(slates)
        added = np.bincount(rows, events["n"].to_numpy(), size).astype(np.int64)
        sums = slates["sum"].to_numpy() + added
        counts = slates["count"].to_numpy() + np.bincount(rows, minlength=size)
        return {"sum": sums, "count": counts, "mean": sums / counts}

    return app
