"""The status of a job at an agent, as `status.json` in the state folder has it."""

from __future__ import annotations

import msgspec
from msgspec import UNSET, UnsetType


class SendingStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The part about sending."""

    sending_paused: str | None = None
    """Why nothing can be sent now."""
    to: str = "root"
    """Where the panes go: to the root, or to a parent by its name."""
    children: dict[str, int | None] | UnsetType = UNSET
    """For each child the pane after the last one that it has reported. Absent: it is no parent."""


class KeptLetters(msgspec.Struct, frozen=True):
    """The dead letters in `dead-letters.jsonl`."""

    kept: int
    cut: int
    """The number of dead letters that did not fit into the file."""


class JobStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The status of a job at this node: counts of records that were read, by result, and the panes
    that wait."""

    job: str
    node: str
    pane: int | None
    """The pane that is being made; None if none was begun."""
    read: int
    on_time: int
    late: int
    shed: int
    dead: int
    misdated: int = 0
    """Those of `dead` that were set aside because their time was implausible."""
    shed_why: dict[str, int]
    """Records that were shed, by the reason."""
    deferred: int
    """Records of panes that are made in a later round."""
    residual: int
    """Records that are not accounted for: 0, unless Millstream has a bug."""
    outside: int
    dead_letters: KeptLetters
    gaps: int
    outbox_bytes: int
    paused: str | None
    """Why nothing is read now."""
    sending_paused: str | None
    to: str
    children: dict[str, int | None] | UnsetType = UNSET
    """As in `SendingStatus`."""
    waiting_for_files: bool
    log_at_end: bool
    at: int
    """The time of this status, in microseconds."""
    unsent: int | UnsetType = UNSET
    """The panes in the outbox, once the job has ended."""
    ended: bool | UnsetType = UNSET
    """True once the job has ended."""
