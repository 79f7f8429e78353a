"""An application whose slates depend on the order of events, and the result of a run."""

from __future__ import annotations

from typing import Any, cast

from engine.in_process import InProcess
from hypothesis import strategies as st

import millstream as ms
from millstream.engine.horizon import Lane
from millstream.model.event import Event
from millstream.model.workflow import Order
from millstream.reference import Reference
from millstream.stores.layout import queue_directory, slates_of, unpack_slate

LANES: tuple[Lane, ...] = ("one-task", "shuffled")
ORDERS: tuple[Order, ...] = ("arrival", "event-time")


def folding(order: str, limit: int | None, overload: str = "throttle") -> ms.App:
    """A map, a limited update whose slates depend on the order, and one behind it."""
    app = ms.App("folding", order=cast(Order, order))
    app.source("in", ts="ts", unit="us", lateness="20us", idle="1h")
    how: dict[str, Any] = {"limit": limit, "overload": overload}
    if overload == "divert":
        how["overflow"] = "too_many"

    @app.map("in", publishes="numbers")
    def numbers(event: ms.Event) -> Any:
        if event.value["n"] % 17 == 5:
            raise ValueError("poison")
        yield ms.emit()

    @app.update("numbers", publishes="folded", **how)
    def fold(event: ms.Event, slate: dict[str, int]) -> Any:
        slate["hash"] = (slate.get("hash", 7) * 31 + event.value["n"]) % 1_000_003
        slate["sum"] = slate.get("sum", 0) + event.value["n"]
        if event.value["n"] % 13 == 4:
            raise ValueError("poison")
        yield ms.emit(key=f"g{slate['hash'] % 3}", value=slate["hash"])

    @app.update("folded")
    def last(event: ms.Event, slate: dict[str, int]) -> None:
        slate["hash"] = (slate.get("hash", 7) * 31 + event.value) % 1_000_003

    if overload == "divert":

        @app.update("too_many")
        def degraded(event: ms.Event, slate: dict[str, int]) -> None:
            slate["count"] = slate.get("count", 0) + 1

    return app


batches = st.lists(
    st.lists(
        st.builds(
            lambda key, at, n: (key, at, n),
            st.sampled_from("abc"),
            st.integers(0, 40),
            st.integers(0, 50),
        ),
        max_size=25,
    ),
    max_size=5,
)


def as_events(given: list[list[tuple[str, int, int]]]) -> list[list[Event]]:
    """Each batch ten microseconds after the last."""
    return [
        [Event("in", 10 * b + at, key, {"n": n, "ts": 10 * b + at}) for key, at, n in batch]
        for b, batch in enumerate(given)
    ]


def run(app: ms.App, given: list[list[Event]], lane: Lane, **how: Any) -> InProcess:
    kind = how.pop("kind", InProcess)
    engine: InProcess = kind(app.checked(), lane=lane, **how)
    for batch in given:
        engine.batch(batch)
    engine.settle(final=True)
    return engine


def slates(engine: InProcess, update: str) -> dict[str, bytes]:
    """The JSON of every slate of an update."""
    prefix, found = slates_of(update), {}
    assert engine.store is not None
    for number in range(engine.shards):
        with engine.store.shard(number).at(engine.progress.batch) as view:
            for row, value in view.scan(prefix, prefix + b"\xff"):
                found[row[len(prefix) :].decode()] = unpack_slate(value).data
    return found


def meant(app: ms.App, events: list[Event]) -> dict[tuple[str, str], bytes]:
    reference = Reference(app.checked())
    reference.feed(events)
    reference.drain()
    return {owner: slate.data for owner, slate in reference.slates.items()}


def sum_of(data: bytes) -> int:
    return field_of(data, "sum")


def field_of(data: bytes, name: str) -> int:
    import json

    return int(json.loads(data)[name])


def queues_of(engine: InProcess) -> list[bytes]:
    """The rows of queues that are left."""
    assert engine.store is not None
    left = []
    for number in range(engine.shards):
        with engine.store.shard(number).at(engine.progress.batch) as view:
            for name in ("fold", "last"):
                start = queue_directory(name)
                left += [row for row, _ in view.scan(start, start + b"\xff")]
    return left
