"""A store that is put back from a copy between two runs of one Spark."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from driver_runs.harness import Run

import millstream as ms
from millstream.settings.settings import Settings
from millstream.stores.reader import SlateReader


def test_a_store_that_was_put_back_is_opened_anew(run: Run, tmp_path: Path) -> None:
    """Workers that go on from run to run must not write to the files that were there before."""
    app = ms.App("replaced")
    app.source("clicks", key="user")

    @app.update("clicks")
    def count(event: ms.Event, slate: Any) -> None:
        slate["n"] = slate.get("n", 0) + 1

    store, given = tmp_path / "store", tmp_path / "in"
    given.mkdir()
    settings = Settings.of("replaced", store, {"clicks": f"json:{given}"}, available_now=True)

    def counted(number: int) -> int:
        (given / f"{number}.json").write_text(json.dumps({"user": "ann"}) + "\n")
        run(app, settings)
        with SlateReader(store) as reader:
            found = reader.get("count", "ann")
            return 0 if found is None else int(found.value["n"])

    assert counted(1) == 1
    shutil.copytree(store, tmp_path / "copy")
    assert counted(2) == 2
    for _ in range(2):  # the second time the same epochs come again
        shutil.rmtree(store)
        shutil.copytree(tmp_path / "copy", store)
        assert counted(2) == 2
