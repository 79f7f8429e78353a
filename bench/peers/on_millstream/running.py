"""Runs an application over all input, to the end of event time, with the settings that it has by
itself; says after each batch how far it is."""

from __future__ import annotations

import os
from pathlib import Path

from progress import Progress

import millstream as ms
from millstream.driver.report import BatchSummary


def run_all(app: ms.App, folders: dict[str, str], sinks: dict[str, str] | None = None) -> None:
    """Run over the folders of the input, by source."""
    slots = Progress(f"{os.environ['PEER_PROGRESS']}-0").slots

    def report(batch: BatchSummary) -> None:
        slots[0] = batch.total_events

    source = Path(os.environ["PEER_INPUT"])
    running = app.start(
        on_batch=report,
        store=str(Path(os.environ["PEER_STATE"]) / "store"),
        sources={name: f"json:{source / folder}" for name, folder in folders.items()},
        sinks=sinks or {},
        available_now=True,
        final=True,
    )
    running.wait()
