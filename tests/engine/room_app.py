"""An application with limited room, and its events, for Hypothesis."""

from __future__ import annotations

from typing import Any

from engine.in_process import InProcess
from engine.limited_room import all_rows
from hypothesis import strategies as st

import millstream as ms
from millstream.model.event import Event
from millstream.stores.layout import slates_of

KEYS = ("a", "b", "c", "d", "e", "", "a\x00b", "é", "k" * 600)


LANES: Any = st.sampled_from(["one-task", "shuffled"])


def by_weight(key: str, slate: Any) -> Any:
    """The weight of the last event; a word of it has no number."""
    return slate["w"]


def by_entries(key: str, table: Any) -> Any:
    return sum(value for _, value in table.scan()) % 5


def an_app(
    keep: int | None = None,
    memory: int | None = None,
    *,
    order: Any = "arrival",
    ranked: bool = True,
    ttl: str | None = None,
) -> ms.App:
    """Weights with timers, and behind them a table of what they were; both have limited room."""
    limited = keep is not None or memory is not None
    app = ms.App("room", order=order)
    app.source("in", lateness="25us", idle="1h")

    @app.update(
        "in",
        publishes="out",
        keep=keep,
        memory=memory,
        ttl=ttl,
        priority=by_weight if ranked and limited else None,
    )
    def weigh(event: Any, slate: Any) -> Any:
        slate["w"] = event.value["w"]
        slate["text"] = "x" * event.value["long"]
        if event.value["do"] == "fail":
            raise ValueError("poison")
        if event.value["do"] == "forget":
            yield ms.forget()
        if event.value["do"] == "timer":
            yield ms.timer(after="7us", name=str(event.value["long"] % 2))
        yield ms.emit(key=event.key[:1], value=[event.key, event.value["long"]])

    @weigh.on_timer
    def ring(timer: Any, slate: Any) -> Any:
        slate["rang"] = slate.get("rang", 0) + 1

    @app.update(
        "out",
        slate=ms.Table,
        keep=keep,
        memory=memory,
        ttl=ttl,
        priority=by_entries if ranked and limited else None,
    )
    def tables(event: Any, table: Any) -> Any:
        name, number = event.value
        if number % 7 == 3:
            yield ms.forget()
        table[name] = number
        table.discard(str(number % 3))
        table[str(number % 4)] = number

    return app


WEIGHTS: Any = st.one_of(
    st.integers(-3, 3), st.sampled_from([0.5, -0.0, 1e300, 10**400, "heavy", None, -1e-300])
)


EVENTS: Any = st.lists(
    st.builds(
        lambda key, ts, w, long, do: Event("in", ts, key, {"w": w, "long": long, "do": do}),
        st.sampled_from(KEYS),
        st.integers(0, 30),
        WEIGHTS,
        st.integers(0, 60),
        st.sampled_from(["", "", "timer", "timer", "forget", "fail"]),
    ),
    max_size=12,
)


BATCHES: Any = st.lists(EVENTS, max_size=6)


def later(batches: list[list[Event]]) -> list[list[Event]]:
    """Each batch ten microseconds after the last."""
    return [[e._replace(ts=e.ts + 10 * n) for e in batch] for n, batch in enumerate(batches)]


def event(ts: int, key: str, w: Any = 0, long: int = 1, do: str = "") -> Event:
    return Event("in", ts, key, {"w": w, "long": long, "do": do})


def keys(engine: InProcess, update: str = "weigh") -> set[str]:
    prefix = slates_of(update)
    return {row[len(prefix) :].decode() for _, row in all_rows(engine) if row.startswith(prefix)}
