"""Changes of slates on Spark, from many tasks at once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from driver_runs.test_change_runs import applied

import millstream as ms
from fault_runs.outcome import kept_rows, stored_slates
from millstream.codec import decode_value
from millstream.settings.settings import Settings
from millstream.spark.runner import run


def test_changes_of_many_tasks_are_the_slates(spark: Any, tmp_path: Path) -> None:
    """In the shuffled lane, with more changes than travel in reports: applied, they are the
    slates; deletions too."""
    app = ms.App("many")
    app.source("events", key="k", ts="t", unit="us")

    @app.update("events")
    def count(event: Any, slate: dict[str, Any]) -> Any:
        slate["n"] = slate.get("n", 0) + 1
        if event.value["t"] % 7 == 0:
            yield ms.forget()

    app.changes("count", name="counts")
    source = tmp_path / "in"
    source.mkdir()
    for number in range(2):
        events = [
            {"k": f"k{n % 6_000}", "t": n} for n in range(number * 9_000, 9_000 + 9_000 * number)
        ]
        (source / f"{number}.json").write_text("".join(json.dumps(e) + "\n" for e in events))
    sources, size = {"events": f"json:{source}"}, 150_000
    given = {"lane": "shuffled", "batch_bytes": size, "available_now": True, "shards": 4}
    run(app, Settings.of("many", tmp_path / "store", sources, {}, **given), context=spark)
    slates = stored_slates(tmp_path / "store")
    wanted = {(key, ""): decode_value(data) for (_, key), (_, data, _, _) in slates.items()}
    rows = kept_rows(tmp_path / "store", "counts")
    assert applied(rows) == wanted
    assert len({row["batch"] for row in rows}) > 1
    assert len({(row["key"], row["batch"]) for row in rows}) == len(rows)
