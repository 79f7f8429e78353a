"""The limits on a slate's size, as a deployment sets them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import millstream as ms
from fault_runs.published_rows import read_log_rows
from millstream.driver.in_process import run
from millstream.settings.settings import Settings
from millstream.stores.home import log_of
from millstream.stores.reader import SlateReader


@pytest.mark.parametrize("lane", ["one-task", "shuffled"])
def test_a_large_slate_is_warned_about_and_too_large_a_one_refused(
    tmp_path: Path, lane: Any
) -> None:
    """Settings win over the application's limits: the slate over the soft one is named, the event
    that would take it over the hard one is a dead letter, and the slate stays as it was."""
    app = ms.App("sized", slate_limit="1GiB")
    app.source("words", key="key", ts="ts", unit="us")

    @app.update("words")
    def keep(event: Any, slate: Any) -> None:
        slate.setdefault("all", []).append("x" * event.value["size"])

    (tmp_path / "in").mkdir()
    sizes = [("small", 10), ("large", 6_000), ("large", 9_000), ("large", 50)]
    lines = [json.dumps({"key": k, "ts": n, "size": s}) for n, (k, s) in enumerate(sizes)]
    (tmp_path / "in" / "1.json").write_text("\n".join(lines) + "\n")
    said: list[str] = []
    given = Settings.of(
        "sized",
        tmp_path / "store",
        {"words": f"json:{tmp_path / 'in'}"},
        shards=2,
        lane=lane,
        available_now=True,
        slate_warn=5_000,
        slate_limit=10_000,
    )
    assert run(app, given, say=said.append).dead_letters == 1
    (letter,) = read_log_rows(log_of(tmp_path / "store", "deadletters"))
    assert letter["value"]["size"] == 9_000
    assert "over the limit of 10000 bytes (slate_limit)" in letter["error"]
    with SlateReader(tmp_path / "store") as reader:
        kept = {
            slate.key: [len(one) for one in slate.value["all"]] for slate in reader.scan("keep")
        }
    assert kept == {"small": [10], "large": [6_000, 50]}
    (sentence,) = said
    assert sentence.startswith("update 'keep', key 'large': its slate has 5.9 KiB, over slate_warn")
