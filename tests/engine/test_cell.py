"""A function in a shard: its reads and its changes."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self

import pytest
from engine.columns_of import columns

import millstream as ms
from millstream.engine.beat import Beat
from millstream.engine.cells.cell import Cell
from millstream.engine.plan import Plan
from millstream.engine.router import Router
from millstream.model.workflow import Order
from millstream.stores.layout import (
    pack_slate,
    slates_of,
    table_of,
    timer_row,
    timers_of,
    unpack_slate,
)

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


class CountingView:
    """Rows in memory that count how many of them are read."""

    def __init__(self, rows: dict[bytes, bytes]) -> None:
        self._rows = rows
        self._keys = sorted(rows)
        self.read = 0

    rows_read = None

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        self.read += len(keys)
        return [self._rows.get(key) for key in keys]

    def get(self, key: bytes) -> bytes | None:
        return self.get_many([key])[0]

    def scan(
        self, start: bytes, stop: bytes | None = None, *, reverse: bool = False, cut: int = 0
    ) -> Iterator[tuple[bytes, bytes]]:
        first = bisect_left(self._keys, start)
        last = len(self._keys) if stop is None else bisect_left(self._keys, stop)
        for index in range(last - 1, first - 1, -1) if reverse else range(first, last):
            self.read += 1
            yield self._keys[index][cut:], self._rows[self._keys[index]]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        pass


def cell_of(
    update: Callable[..., Any],
    view: CountingView,
    *,
    order: Order = "arrival",
    horizon: int | None = None,
    **given: Any,
) -> tuple[Cell, Beat, Router]:
    app = ms.App("cell", order=order)
    app.source("s")
    app.update("s", name="u", **given)(update)
    plan = Plan(app.workflow(), 1, frozenset())
    beat = Beat(epoch=1, batch=3, clock=0, horizon=horizon, passed=None)
    return Cell(plan, 0, view, beat), beat, Router(plan, 3)


@pytest.fixture(scope="module")
def large_table() -> dict[bytes, bytes]:
    """The rows of a table of 100,000 entries, between two others."""
    prefix = table_of("u", "k")
    rows = {prefix + b"%06d" % n: b"%d" % n for n in range(100_000)}
    rows |= {table_of("u", "j") + b"x": b"1", table_of("u", "l") + b"x": b"1"}
    rows[slates_of("u") + b"k"] = pack_slate(1, b"", {})
    return rows


def test_a_large_table_is_read_entry_by_entry(large_table: dict[bytes, bytes]) -> None:
    """An update that touches three of 100,000 entries reads and writes those three alone."""

    def update(event: ms.Event, slate: ms.Table) -> None:
        slate["000005"] = slate["000005"] + 1
        del slate["070000"]
        slate["new"] = event.value

    view = CountingView(large_table)
    cell, beat, router = cell_of(update, view, slate=ms.Table)
    cell.step(columns(2), beat, router)
    prefix = table_of("u", "k")
    assert cell.changes() == {
        slates_of("u") + b"k": pack_slate(2, b"", {}),
        prefix + b"000005": b"6",
        prefix + b"070000": None,
        prefix + b"new": b"null",
    }
    assert view.read <= 5, "the slate's row, the entries that were read, no order of slates"
    assert router.dead == []


def test_a_scan_reads_no_more_than_it_yields(large_table: dict[bytes, bytes]) -> None:
    """A scan with a limit, in either direction, reads that many entries of the table."""

    def update(event: ms.Event, slate: ms.Table) -> None:
        first = [entry for entry, _ in slate.scan("050000", limit=3)]
        last = [entry for entry, _ in slate.scan(reverse=True, limit=2)]
        slate["found"] = [*first, *last]

    view = CountingView(large_table)
    cell, beat, router = cell_of(update, view, slate=ms.Table)
    cell.step(columns(2), beat, router)
    found = cell.changes()[table_of("u", "k") + b"found"]
    assert found == b'["050000","050001","050002","099999","099998"]'
    assert view.read <= 10


def test_a_step_sees_the_steps_before_it() -> None:
    """A cell that is stepped twice in a batch finds its own changes, though nothing is written."""

    def update(event: ms.Event, slate: dict[str, Any]) -> None:
        slate["n"] = slate.get("n", 0) + 1

    cell, beat, router = cell_of(update, CountingView({}))
    cell.step(columns(1), beat, router)
    cell.step(columns(2, 3), beat, router)
    (row,) = cell.changes().values()
    assert row is not None
    assert unpack_slate(row).data == b'{"n":3}'
    assert cell.counts.processed == 3


def test_a_table_that_is_forgotten_leaves_no_entry() -> None:
    """Forgetting deletes every stored entry and every new one; the slate's row goes too."""

    def update(event: ms.Event, slate: ms.Table) -> Iterator[Any]:
        slate["new"] = 1
        if event.ts == 2:
            yield ms.forget()

    prefix = table_of("u", "k")
    stored = {prefix + b"old": b"1", slates_of("u") + b"k": pack_slate(0, b"", {})}
    cell, beat, router = cell_of(update, CountingView(stored), slate=ms.Table)
    cell.step(columns(1), beat, router)
    cell.step(columns(2), beat, router)
    assert set(cell.changes().values()) == {None}
    assert set(cell.changes()) == {*stored, prefix + b"new"}


def test_the_index_of_timers_follows_the_slates() -> None:
    """A timer that is moved leaves one row in the index, a timer that fires leaves none."""

    def update(event: ms.Event, slate: dict[str, Any]) -> Iterator[Any]:
        yield ms.timer(at=event.ts + 10)

    index = timers_of("u", "event")
    stored = {
        slates_of("u") + b"k": pack_slate(0, b"{}", {"": ("event", 8)}),
        timer_row(index, 8, "k"): b"",
        slates_of("u") + b"other": pack_slate(0, b"{}", {"": ("event", 3)}),
        timer_row(index, 3, "other"): b"",
    }
    cell, beat, router = cell_of(
        update, CountingView(stored), horizon=5, on_timer=lambda timer, slate: None
    )
    assert cell.least_timer("event") == 3
    cell.step(columns(2), beat, router)
    changes = cell.changes()
    rows = {row: value for row, value in changes.items() if row.startswith(index)}
    assert rows == {
        timer_row(index, 8, "k"): None,
        timer_row(index, 12, "k"): b"",
        timer_row(index, 3, "other"): None,
    }
    assert cell.least_timer("event") == 12


def test_due_timers_are_found_without_reading_the_others() -> None:
    """Of 10,000 timers only the due ones are read."""
    index = timers_of("u", "event")
    stored = {timer_row(index, 100 + n, "later"): b"" for n in range(10_000)}
    stored[timer_row(index, 3, "k")] = b""
    stored[slates_of("u") + b"k"] = pack_slate(0, b"{}", {"": ("event", 3)})
    view = CountingView(stored)
    cell, beat, router = cell_of(
        lambda event, slate: None, view, horizon=5, on_timer=lambda timer, slate: None
    )
    cell.step(None, beat, router)
    assert cell.least_timer("event") == 100
    assert view.read <= 5


def test_an_idle_cell_changes_nothing() -> None:
    """Without events and timers there are no rows to commit."""
    cell, beat, router = cell_of(lambda event, slate: None, CountingView({}), order="event-time")
    cell.step(None, beat, router)
    assert cell.changes() == {}
