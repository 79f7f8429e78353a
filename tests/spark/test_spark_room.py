"""Limited room: the slates that an update keeps, and the run's messages about it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from driver_runs.harness import Run
from progress_counts import by_function

import millstream as ms
from millstream.driver.report import BatchSummary
from millstream.settings.settings import Settings
from millstream.stores.home import Home
from millstream.stores.progress import decoded
from millstream.stores.ranks import Totals, totals_row
from millstream.stores.reader import SlateReader
from millstream.verifying.store import verify


@pytest.mark.parametrize("lane", ["one-task", "shuffled"])
def test_the_most_important_stay(run: Run, tmp_path: Path, lane: Any) -> None:
    """Each shard keeps its share, in both lanes and over two runs; the rest is counted and told.

    All tasks of both runs order slates by the same mark.
    """
    app = ms.App("room")
    app.source("clicks", key="key", ts="ts", unit="us")
    odd = {"key 3", "key 4"}

    @app.update("clicks", keep=4, priority=lambda key, slate: None if key in odd else slate["n"])
    def count(event: Any, slate: Any) -> None:
        slate["n"] = slate.get("n", 0) + event.value["n"]

    source, reports, said = tmp_path / "in", [], []
    source.mkdir()
    given = Settings.of(
        "room",
        tmp_path / "store",
        {"clicks": f"json:{source}"},
        shards=2,
        lane=lane,
        available_now=True,
    )
    for turn in range(2):
        lines = [json.dumps({"key": f"key {n}", "ts": 100 * turn + n, "n": n}) for n in range(12)]
        (source / f"{turn}.json").write_text("\n".join(lines) + "\n")
        result = run(app, given, reports.append, say=said.append)
        assert result.evicted == 8
    assert isinstance(reports[-1], BatchSummary)
    assert reports[-1].total_evicted == 16
    (sentence,) = said[:1]
    assert "its priority could not be computed" in sentence
    with SlateReader(tmp_path / "store") as reader:
        kept = {slate.key: slate.value["n"] for slate in reader.scan("count")}
    home = Home.open(tmp_path / "store")
    progress = decoded(home.read_progress())
    assert by_function(progress.functions, "slates") == {"count": 4}
    assert by_function(progress.functions, "evicted") == {"count": 16}
    assert len(kept) == 4
    assert all(n == 2 * int(key.split()[1]) for key, n in kept.items()), "the same as before"
    store = home.store()
    marks = set()
    for number in range(2):
        with store.shard(number).at(progress.batch) as view:
            stored = view.get(totals_row("count"))
            assert stored is not None
            marks.add(Totals.unpack(stored).mark)
            assert Totals.unpack(stored).slates == 2
    store.close()
    assert len(marks) == 1
    assert verify(tmp_path / "store").faults == []
