"""What an agent says when it ends: what it read, what became of that, and what is still to do."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from millstream.model.place import shown_path

REASONS = {
    "shed": "there was no time for them before the job's latency",
    "drawn": "their panes were not drawn for the sample",
    "cancelled": "their windows were already closed",
    "memory": "their panes did not fit (--memory), or were too large to be sent",
}
"""Why records were shed, by the `why` of their panes."""


def summary(status: Mapping[str, Any], state: Path) -> list[str]:
    """Sentences on how it was; `status` is that of the end, kept in the folder `state`."""
    said = []
    if status["dead"]:
        said.append(
            f"{_many(status['dead'], 'dead letter')}, lines that could not be read or mapped: "
            f"see {shown_path(state / 'dead-letters.jsonl')}"
        )
    if status["gaps"]:
        said.append(
            f"{_many(status['gaps'], 'gap')} in the log: lines were lost before they were read; "
            "the panes that may have had them say so"
        )
    for why, count in sorted(status["shed_why"].items()):
        hint = ""
        if why == "cancelled" and not status["on_time"]:
            hint = f": is {shown_path(state)} the right --state?"
        said.append(f"{_many(count, 'record')} shed: {REASONS.get(why, why)}{hint}")
    counts = ("read", "on_time", "late", "shed", "dead")
    said.append(", ".join(f"{name.replace('_', ' ')} {status[name]:,}" for name in counts))
    return said


def undone(status: Mapping[str, Any]) -> str:
    """What is left to be done; empty if nothing is."""
    panes = status["unsent"]
    if not panes:
        return "" if status["log_at_end"] else "the log is not read to its end"
    words = "1 pane is not sent" if panes == 1 else f"{panes:,} panes are not sent"
    return f"{words}; {status['sending_paused']}" if status["sending_paused"] else words


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"
