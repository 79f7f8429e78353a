"""Changes of slates, through whole runs: what files and logs have adds up to the slates."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import millstream as ms
from fault_runs.outcome import kept_rows, stored_slates
from fault_runs.published_rows import read_rows
from millstream.codec import decode_value
from millstream.driver import stages
from millstream.driver.in_process import run
from millstream.settings.settings import Settings

KEYS = [f"k{n}" for n in range(12)]
Rows = list[dict[str, Any]]


def application() -> ms.App:
    """A count that is forgotten at every fifth, an aggregate, and a table with bytes in it."""
    app = ms.App("changing")
    app.source("events", key="k", ts="t", unit="us")

    @app.update("events")
    def count(event: Any, slate: dict[str, Any]) -> Any:
        slate["n"] = slate.get("n", 0) + 1
        if slate["n"] == 5:
            yield ms.forget()

    app.aggregate("events", algebra=ms.algebra.count(), name="total")

    @app.update("events", slate=ms.Table)
    def marks(event: Any, slate: ms.Table) -> None:
        slate[str(event.ts % 3)] = (event.ts, None, b"\x00raw")[event.ts % 3]
        slate.discard(str((event.ts + 1) % 3))

    for update in ("count", "total", "marks"):
        app.changes(update)
    return app


def applied(rows: Rows) -> dict[tuple[str, str], Any]:
    """Applies all changes, and returns the result. Batch numbers must rise."""
    held: dict[tuple[str, str], Any] = {}
    batches = [row["batch"] for row in rows]
    assert batches == sorted(batches)
    for row in rows:
        gone = row.get("deleted", row["slate"] is None)
        if gone:
            held.pop((row["key"], row.get("entry", "")), None)
        else:
            held[row["key"], row.get("entry", "")] = row["slate"]
    return held


@pytest.mark.parametrize("flush", [None, 1, 3_600_000_000])
@pytest.mark.parametrize("inline", [0, 2_000])
def test_what_was_published_is_the_slates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flush: int | None, inline: int
) -> None:
    """In the log of the output, in JSON and in Parquet files: after some runs, with either way to
    flush, with changes that travel in reports and that tasks have staged."""
    monkeypatch.setattr(stages, "INLINE_ROWS", inline)
    app, source, store = application(), tmp_path / "in", tmp_path / "store"
    source.mkdir()
    outputs = app.checked().outputs
    forms = dict(zip(outputs, ("json", "parquet", "parquet"), strict=True))
    sinks = {name: f"{form}:{tmp_path / name}" for name, form in forms.items()}
    for start in range(3):
        for number in range(4):
            events = [{"k": KEYS[(start + n * n) % 12], "t": 100 * start + n} for n in range(40)]
            lines = "".join(json.dumps(event) + "\n" for event in events)
            (source / f"{start}-{number}.json").write_text(lines)
        given = Settings.of(
            app.name,
            store,
            {"events": f"json:{source}"},
            sinks,
            available_now=True,
            shards=3,
            flush=flush,
            batch_bytes=1_000,
            check_store=False,
        )
        run(app, given)
    slates = stored_slates(store)
    for update in ("count", "total", "marks"):
        wanted: dict[tuple[str, str], Any] = {}
        for (name, key), (_, data, _, entries) in slates.items():
            if name == update:
                of_table = {(key, entry): decode_value(v) for entry, v in entries.items()}
                wanted |= of_table if update == "marks" else {(key, ""): decode_value(data)}
        output = f"{update}.changes"
        assert applied(kept_rows(store, output)) == wanted
        assert applied(list(read_rows(str(tmp_path / output)))) == wanted


def test_a_sink_is_held_to_its_kind(tmp_path: Path) -> None:
    """A row has the columns that the reference names."""
    app, source = application(), tmp_path / "in"
    source.mkdir()
    (source / "1.json").write_text('{"k": "a", "t": 2}\n')
    sources = {"events": f"json:{source}"}
    run(app, Settings.of(app.name, tmp_path / "store", sources, {}, available_now=True))
    (row,) = kept_rows(tmp_path / "store", "total.changes")
    assert row == {"key": "a", "slate": {"count": 1}, "ts": 2, "batch": 0}
    rows = kept_rows(tmp_path / "store", "marks.changes")
    assert {
        "key": "a",
        "entry": "2",
        "slate": b"\x00raw",
        "deleted": False,
        "ts": 2,
        "batch": 0,
    } in rows
