"""The messages at the end of an agent: what it read, how the records were counted, what is left."""

from __future__ import annotations

from pathlib import Path

from millstream.agent.job_status import JobStatus
from millstream.counted_nouns import counted, verb
from millstream.model.place import shown_path

REASONS = {
    "shed": "there was no time for them before the job's latency",
    "drawn": "their panes were not drawn for the sample",
    "cancelled": "their windows were already closed",
    "memory": "their panes did not fit (--memory), or were too large to be sent",
}
"""The reasons why records were shed, by the `why` of their panes."""


def summary(status: JobStatus, state: Path) -> list[str]:
    """Returns sentences that sum up a run. `status` is the last one, `state` the state folder."""
    sentences = []
    if status.dead:
        sentences.append(
            f"{counted(status.dead, 'dead letter')}, lines that could not be read or mapped: "
            f"see {shown_path(state / 'dead-letters.jsonl')}"
        )
    if status.gaps:
        sentences.append(
            f"{counted(status.gaps, 'gap')} in the log: lines were lost before they were read; "
            "the panes that may have had these lines say so"
        )
    for why, count in sorted(status.shed_why.items()):
        hint = ""
        if why == "cancelled" and not status.on_time:
            hint = f": is {shown_path(state)} the right --state?"
        sentences.append(f"{counted(count, 'record')} shed: {REASONS.get(why, why)}{hint}")
    sentences.append(
        f"read {status.read:,}, on time {status.on_time:,}, late {status.late:,}, "
        f"shed {status.shed:,}, dead {status.dead:,}"
        + (f", of these {status.misdated:,} for their times" if status.misdated else "")
    )
    return sentences


def undone(status: JobStatus) -> str:
    """Returns what is left to do; empty if there is nothing."""
    panes = status.unsent
    if not panes:
        return "" if status.log_at_end else "the log is not read to its end"
    words = f"{counted(panes, 'pane')} {verb(panes, 'is', 'are')} not sent"
    return f"{words}; {status.sending_paused}" if status.sending_paused else words
