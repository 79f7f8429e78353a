"""The order of slates in a real store: verify checks it, and vacuum keeps it right."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from progress_counts import by_function
from verifying.filled_store import SHARDS, clicks, dress, fill
from verifying.test_vacuum import quietly, rows

import millstream as ms
from millstream.stores.contract import Fence
from millstream.stores.home import Home
from millstream.stores.ranks import Totals, order_of, ranks_of, totals_row
from millstream.stores.vacuum import vacuum
from millstream.verifying.store import verify

pytestmark = pytest.mark.timeout(120)


def an_app(keep: int | None = 40, memory: str | None = None, ttl: str | None = None) -> ms.App:
    """Counts and a table, of which the highest are kept."""
    app = ms.App("filled", order="event-time")
    app.source("clicks", lateness="10us")
    how: dict[str, Any] = {"keep": keep, "memory": memory, "ttl": ttl}

    @app.update("clicks", priority=lambda key, slate: slate["n"], **how)
    def count(event, slate):
        slate["n"] = event.ts % 13
        yield ms.timer(after="1h")

    @count.on_timer
    def ring(timer, slate):
        slate["rang"] = True

    @app.update("clicks", slate=ms.Table, **how)
    def seen(event, table):
        table[str(event.ts)] = event.value

    return app


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store whose updates have each let go more slates than they keep."""
    path = tmp_path / "store"
    engine = fill(path, an_app(), [clicks(0, 500), clicks(500, 600), [], []])
    assert by_function(engine.progress.functions, "slates") == {"count": 40, "seen": 40}
    assert engine.progress.counts("count").evicted >= 57
    dress(path, engine)
    return path


def test_a_store_with_limited_room_is_whole(store: Path) -> None:
    """Nothing is found in it, by verify or after a vacuum."""
    assert verify(store).faults == []
    before = rows(store)
    vacuum(Home.open(store), {}, quietly)
    assert rows(store) == before
    assert verify(store).faults == []


def damage(store: Path, changes: Any) -> None:
    """Commit to a shard what `changes` makes of its rows."""
    home = Home.open(store)
    opened, batch = home.store(), home.committed()
    with opened.shard(0).at(batch) as view:
        made = changes(dict(view.scan(b"")))
    opened.shard(0).commit(Fence(1_000, batch, 0), {"meddler": made})
    opened.close()


def first(rows: dict[bytes, bytes], prefix: bytes) -> bytes:
    return next(row for row in sorted(rows) if row.startswith(prefix))


DAMAGE: dict[str, Any] = {
    "is missing, and its slate is there": lambda r: {first(r, ranks_of("count")): None},
    "is there, and its slate is not": lambda r: {
        ranks_of("count") + b"nobody": r[first(r, ranks_of("count"))]
    },
    "is not in the order": lambda r: {first(r, order_of("seen")): None},
    "and the slate is not ranked so": lambda r: {
        order_of("seen") + bytes(16) + b"nobody": bytes(8)
    },
    "but its slate has": lambda r: {
        first(r, ranks_of("seen")): r[first(r, ranks_of("seen"))][:-1] + b"\x00"
    },
    "say 1 slate of 2 bytes": lambda r: {
        totals_row("count"): Totals(r[totals_row("count")][:8], 1, 2).pack()
    },
    "are missing, and there is an order": lambda r: {totals_row("count"): None},
    "cannot be read": lambda r: {totals_row("count"): b"short"},
}


@pytest.mark.parametrize("wrong", DAMAGE)
def test_an_order_that_does_not_fit_is_found(store: Path, wrong: str) -> None:
    """Every row of the order that does not fit the slates is a finding that names it."""
    damage(store, DAMAGE[wrong])
    all_found = verify(store).faults
    found = [one for one in all_found if wrong in one.wrong]
    assert found, all_found
    assert all("rank of" in one.wrong or "totals of" in one.wrong for one in found)


def test_expired_slates_leave_the_order(store: Path) -> None:
    """After a vacuum that took some, the next batch puts the rest in order."""
    done = vacuum(Home.open(store), {"count": (589, 50), "seen": (589, 50)}, quietly)
    assert done.expired["count"] > 0
    assert verify(store).faults == []
    fill(store, an_app(), [clicks(600, 610), []])
    orders = [row for _, row in rows(store) if row in (totals_row("count"), totals_row("seen"))]
    assert len(orders) == 2 * SHARDS
    assert not [one for one in verify(store).faults if "data.mdb" in one.file]


def test_memory_on_disk(tmp_path: Path) -> None:
    """The bytes counted are those of the rows that are stored, and fit the limit."""
    path = tmp_path / "store"
    dress(path, fill(path, an_app(None, "4KiB"), [clicks(0, 300), clicks(300, 600), []]))
    for update in ("count", "seen"):
        name = update.encode() + b"\x00"
        taken = sum(
            len(row) + len(value)
            for (_, row), value in rows(path).items()
            if row.startswith((b"S" + name, b"E" + name))
        )
        assert 2_000 < taken <= 4_096
    assert verify(path).faults == []
