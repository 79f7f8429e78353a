"""Batch updates on both runners: the slates of calling them event by event, in both lanes."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from driver_runs.harness import Run

import millstream as ms
from millstream.settings.settings import Settings
from millstream.stores.reader import SlateReader


@dataclass
class Sale:
    """The columns of the events' values."""

    amount: int


@dataclass
class Revenue:
    """The slate of a product."""

    sum: int = 0
    count: int = 0


@pytest.mark.parametrize("lane", ["one-task", "shuffled"])
def test_batch_updates_of_files(run: Run, tmp_path: Path, lane: Any) -> None:
    """Every good event counts once, over several batches and tasks; each bad one is a dead letter
    and spoils no other of its key."""
    app = ms.App("shop")
    app.source("sales", key="product", ts="at", unit="us")

    @app.update("sales", batch=True)
    def revenue(events: list[ms.Event], slate: dict[str, int]) -> None:
        slate["sum"] = slate.get("sum", 0) + sum(event.value["amount"] for event in events)
        slate["count"] = slate.get("count", 0) + len(events)

    @app.update("sales", slate=Revenue, batch=True, across_keys=True, values=Sale)
    def across(events: Any, slates: Any) -> Any:
        rows, size = events["row"].to_numpy(), len(slates)
        amounts = np.bincount(rows, events["amount"].to_numpy(), size).astype(np.int64)
        counts = slates["count"].to_numpy() + np.bincount(rows, minlength=size)
        return {"sum": slates["sum"].to_numpy() + amounts, "count": counts}

    total: Counter[str] = Counter()
    count: Counter[str] = Counter()
    (tmp_path / "sales").mkdir()
    for part in range(3):
        lines = []
        for number in range(400):
            product = "pen" if number % 10 else f"p{number}"
            amount: Any = "free" if number == 77 else number
            lines.append(json.dumps({"product": product, "at": number, "amount": amount}))
            if number != 77:
                total[product] += number
                count[product] += 1
        (tmp_path / "sales" / f"{part}.json").write_text("\n".join(lines) + "\n")
    given = Settings.of(
        "shop",
        tmp_path / "store",
        {"sales": f"json:{tmp_path / 'sales'}"},
        shards=4,
        lane=lane,
        available_now=True,
        batch_bytes=30_000,
    )
    summary = run(app, given)
    assert summary.batches >= 2
    assert summary.dead_letters == 6
    with SlateReader(tmp_path / "store") as reader:
        slates = {slate.key: slate.value for slate in reader.scan("revenue")}
        tables = {slate.key: slate.value for slate in reader.scan("across")}
    assert slates == tables
    assert slates == {key: {"sum": total[key], "count": count[key]} for key in count}
