"""Aggregates on both runners: combined in the tasks that read, the same in both lanes."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from driver_runs.harness import Run

import millstream as ms
from millstream import algebra
from millstream.settings.settings import Settings
from millstream.stores.reader import SlateReader


@pytest.mark.parametrize("lane", ["one-task", "shuffled"])
def test_aggregates_of_files(run: Run, tmp_path: Path, lane: Any) -> None:
    """A count whose lines are not even decoded, with a bad line among them, and a sum behind a map
    have every good event once, over several batches and tasks."""
    app = ms.App("shop")
    app.source("sales", key="product", ts="at", unit="us")
    app.source("more", key="product", ts="at", unit="us")
    app.aggregate("sales", algebra=algebra.count(), name="hits")
    app.aggregate("priced", "more", algebra=algebra.sum("amount"), name="revenue")

    @app.map("more", publishes="priced")
    def price(event: ms.Event) -> Any:
        yield ms.emit(value={"amount": 2 * event.value["amount"]})

    wanted: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for name in ("sales", "more"):
        (tmp_path / name).mkdir()
        for part in range(3):
            lines = []
            for number in range(400):
                product = "pen" if number % 10 else f"p{number}"
                record = {"product": product, "at": number, "amount": number / 8}
                lines.append(json.dumps(record, separators=(",", ":")))
                if name == "sales":
                    wanted[product] += 1
                else:
                    total[product] += 3 * number / 8
            lines.insert(part * 100, "{not json}")
            (tmp_path / name / f"{part}.json").write_text("\n".join(lines) + "\n")
    given = Settings.of(
        "shop",
        tmp_path / "store",
        {name: f"json:{tmp_path / name}" for name in ("sales", "more")},
        shards=4,
        lane=lane,
        available_now=True,
        batch_bytes=30_000,
    )
    summary = run(app, given)
    assert summary.batches >= 2
    assert summary.dead_letters == 6
    with SlateReader(tmp_path / "store") as reader:
        hits = {slate.key: slate.value for slate in reader.scan("hits")}
        revenue = {slate.key: slate.value["sum"] for slate in reader.scan("revenue")}
    assert hits == {key: {"count": count} for key, count in wanted.items()}
    assert revenue == dict(total)
