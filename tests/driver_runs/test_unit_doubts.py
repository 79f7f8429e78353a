"""A source whose times are likely to have another unit is named."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

import millstream as ms
from millstream.driver.in_process import run
from millstream.settings.settings import Settings


@pytest.mark.parametrize("order", ["arrival", "event-time"])
@pytest.mark.parametrize(("unit", "warned"), [("ms", True), ("s", False)])
def test_seconds_that_are_taken_for_milliseconds(
    tmp_path: Path, order: Any, unit: str, warned: bool
) -> None:
    """Their times are of 1970, which could be meant: the run goes on, and says once what is
    likely."""
    app = ms.App("clicks", order=order)
    app.source("clicks", key="key", ts="at", unit=unit)

    @app.update("clicks")
    def count(event: Any, slate: Any) -> None:
        slate["n"] = slate.get("n", 0) + 1

    folder = tmp_path / "in"
    folder.mkdir()
    now = int(time.time()) - 10
    for number in range(3):
        line = json.dumps({"key": "a", "at": now + number})
        (folder / f"{number}.json").write_text(line + "\n")
    said: list[str] = []
    given = Settings.of(
        "clicks",
        tmp_path / "store",
        {"clicks": f"json:{folder}"},
        available_now=True,
        shards=2,
    )
    run(app, given, say=said.append)
    start = "source 'clicks': its times are likely to be in seconds (unit='s'): in milliseconds"
    assert [one.startswith(start) for one in said] == [True] * warned
