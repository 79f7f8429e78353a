"""Where the programs read and write, how they persist, and how they end.

A streaming input has no end, so a program says that it is done when `total` shows that all events
are in its results, and when the results of all windows are out; whoever started it then ends it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pathway as pw
from progress import Progress

process = int(os.environ.get("PATHWAY_PROCESS_ID", "0"))
slots = Progress(f"{os.environ['PEER_PROGRESS']}-{process}").slots
_result = Path(os.environ["PEER_RESULT"])


def read(schema: type[pw.Schema], folder: str) -> pw.Table:
    """The rows of the files of a folder of the input, as they come."""
    source = Path(os.environ["PEER_INPUT"]) / folder
    every = 100 if os.environ.get("PEER_LIVE") else 1_500  # milliseconds; the latter by itself
    return pw.io.jsonlines.read(
        source,
        schema=schema,
        mode="streaming",
        name=f"rows {folder}",
        autocommit_duration_ms=every,
    )


def run(answers: pw.Table, totals: pw.Table, *, windows: bool = False) -> None:
    """Run until the program is ended.

    `answers` has the columns `key` and `value`, `totals` one row with the `total` of events that
    are in them. `windows`: answers come only once, when their windows are over, which may be some
    time after all events are in `totals`.
    """
    pw.io.jsonlines.write(answers, _result / "answers")
    latest = [0]
    closed: set[Any] = set()

    def changed(key: Any, row: dict[str, Any], time: int, is_addition: bool) -> None:
        if is_addition:
            latest[0] = row["total"]

    def answered(key: Any, row: dict[str, Any], time: int, is_addition: bool) -> None:
        closed.add(row["key"])

    def time_ended(time: int) -> None:
        all_in = latest[0] == int(os.environ["PEER_EVENTS"])
        if all_in and (not windows or len(closed) >= int(os.environ["PEER_ANSWERS"])):
            (_result / "done").touch()

    pw.io.subscribe(totals, changed, on_time_end=time_ended)
    if windows:
        pw.io.subscribe(answers, answered, on_time_end=time_ended)
    kept = pw.persistence.Backend.filesystem(os.environ["PEER_STATE"])
    pw.run(
        monitoring_level=pw.MonitoringLevel.NONE,
        persistence_config=pw.persistence.Config(kept, snapshot_interval_ms=1_000),
    )
