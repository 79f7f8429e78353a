"""The record of the last committed batch: writing it commits the batch.

The driver writes it once a batch (`Home.write_progress`). It tells readers of the store which batch
to read the slates as of, and how the application is doing. All counts are since the store was
created.
"""

from __future__ import annotations

from typing import Any

import msgspec

from millstream.stores.function_counts import FunctionCounts, in_all


class SourceProgress(msgspec.Struct):
    """The state of a source."""

    highest: int | None = None
    """The greatest ts seen."""
    clock: int = 0
    """The clock of the last batch that brought any of its records."""
    position: list[int] | None = None
    """The position up to which its records were taken in, as its kind of source counts; None if
    none were."""
    events: int = 0
    lost: int = 0
    """Records that were gone before they could be read, if the source goes on without them."""
    record_bytes: float = 0.0
    """The recent size of its records, if the driver needs it for estimates; else 0."""
    refused: int = 0
    """Records that did not become events."""


class FinalPhase(msgspec.Struct):
    """A final phase (`--final`) that is under way: see engine/final_phase.py."""

    end: int
    """Event time when it began: all input had been processed."""
    highest: int | None = None
    """The greatest ts of any event since."""
    fired: int | None = None
    """The latest timer that has fired since."""
    closed: list[str] = []
    """The functions that are closed."""
    latest: dict[str, int] = {}
    """The greatest ts of the events that came to each update since."""
    limits: dict[str, int] = {}
    """The latest time of timers that may fire, for each update that is being closed, once some
    have fired."""


class Ended(msgspec.Struct, frozen=True):
    """The end of event time that a final phase has set."""

    at: int
    """Timers up to this time stay pending until event time goes on."""
    events: int
    """The number of events that the sources had brought, without late ones."""


class Arrival(msgspec.Struct, frozen=True, array_like=True):
    """A batch with events that may still wait for the horizon."""

    batch: int
    oldest: int
    """The wall time at which its oldest record came in."""
    written: int
    """The wall time of its commit."""
    highest: int
    """The greatest ts of its events: once the horizon has reached it, none of them waits."""


class Latency(msgspec.Struct, frozen=True):
    """The latency of the oldest event that a batch fed, in microseconds."""

    batch: int
    whole: int
    """From its arrival to the commit."""
    waited: int
    """The part of this time that it spent waiting for the horizon."""


class PendingWork(msgspec.Struct):
    """What a batch has left to do: of one task in its report, of all in the progress."""

    least_waiting: int | None = None
    """The time of the earliest event that waits for the horizon."""
    least_timer: int | None = None
    """The earliest timer in event time."""
    least_wall: int | None = None
    """The earliest timer by the clock."""
    feedback: int = 0
    """The number of feedback events for the next batch."""
    least_feedback: int | None = None
    """The time of the earliest of them."""
    held: int = 0
    """Events that wait because there were too many for a batch."""
    pressure: float = 0.0
    """The fill level of the fullest queue of such events: at 1 the sources are stopped."""
    hold: int | None = None
    """The upper bound of the horizon in the next batch: up to it, no throttled update gets too many
    events at once."""


class BatchTiming(msgspec.Struct):
    """How long batches take, and how much they may therefore take in."""

    seconds: float = 0.0
    """The time that all batches have taken together."""
    last_seconds: float = 0.0
    intake: int | None = None
    """The most bytes that the next batch may take in; None: not known yet."""
    pace: float | None = None
    """Microseconds of the functions' time that a byte of input has recently cost."""
    costs: dict[str, float] = {}
    """Microseconds that an event has recently cost each function."""


class Progress(msgspec.Struct):
    """The state of the driver after the last committed batch."""

    batch: int = -1
    clock: int = 0
    horizon: int | None = None
    highest: int | None = None
    sources: dict[str, SourceProgress] = {}
    waiting: int = 0
    pending: PendingWork = msgspec.field(default_factory=PendingWork)
    timing: BatchTiming = msgspec.field(default_factory=BatchTiming)
    events: int = 0
    late: int = 0
    dead_letters: int = 0
    query: str = ""
    """The id by which sinks know these batches: the store's id or, in a store created with format
    2, the id of Spark's query."""
    staged: list[str] = []
    """The files of this batch's output; any other staged file is from a failed attempt."""
    unpublished: list[tuple[int, list[str]]] = []
    """Batches, this one too, that are not flushed yet, with the files of their output."""
    last_batches: list[int] = []
    """For each shard the last batch that changed it: a shard with a lower one has lost a commit."""
    soft: str = ""
    """The layer that the batch is in until it is flushed; empty if each batch is flushed."""
    functions: dict[str, FunctionCounts] = {}
    emitted: dict[str, int] = {}
    """Events put onto each stream, the sources' included."""
    measured: Latency | None = None
    """The latency of the last batch that fed events."""
    arrivals: list[Arrival] = []
    """In event-time order: batches with events that may wait, the oldest first."""
    written: int = 0
    """The wall time of the commit."""
    final: FinalPhase | None = None
    """The final phase that is under way: it is finished before anything else is done."""
    ended: Ended | None = None
    """The end of event time that the last final phase has set."""
    folder: str = ""
    """In a mirror of a shared store: the folder of the shards that have this batch."""

    def counts(self, function: str) -> FunctionCounts:
        """Returns the counts of a function; all are 0 if it is not known."""
        return self.functions.get(function) or FunctionCounts()

    @property
    def slates(self) -> dict[str, int]:
        """The number of slates of each function; a map has none."""
        return {name: counts.slates for name, counts in self.functions.items()}

    def total(self) -> FunctionCounts:
        """Returns the counts of all functions together."""
        return in_all(self.functions.values())


FORMER_COUNTS = {
    **dict.fromkeys(FunctionCounts.__struct_fields__),
    **{"late": "late_at", "refused": "refused_at", "waiting": "waiting_at"},
    "feedback": "feedback_at",
}
"""The former field of `Progress` with a count of each function; None: of the count's name."""

PARTS: dict[str, type[msgspec.Struct]] = {"pending": PendingWork, "timing": BatchTiming}
"""Parts of `Progress` whose fields were formerly its own."""


def decoded(data: bytes | None) -> Progress:
    """Parses a store's progress; None gives the progress before the first batch."""
    if data is None:
        return Progress()
    progress = msgspec.json.decode(data, type=Progress)
    if progress.functions:
        return progress
    return msgspec.convert(_converted(msgspec.json.decode(data)), Progress)


def _converted(record: dict[str, Any]) -> dict[str, Any]:
    """Returns a record of a store of format 4 or before in today's form. Others stay as they are.

    It had no parts, and each count was a field of its own, by function or by source.
    """
    functions: dict[str, dict[str, Any]] = {}
    for field, former in FORMER_COUNTS.items():
        counts = record.get(former or field)
        for name, count in counts.items() if isinstance(counts, dict) else ():
            functions.setdefault(name, {})[field] = count
    sources = record.setdefault("sources", {})
    for name, count in record.get("refused", {}).items():
        sources.setdefault(name, {})["refused"] = count
    parts = {
        name: {field: record[field] for field in kind.__struct_fields__ if field in record}
        for name, kind in PARTS.items()
    }
    return {"functions": functions, **parts, **record}
