"""The record of the last committed batch: writing it is what commits the batch.

The driver writes it once a batch (`Home.write_progress`); whoever reads the store learns from it
which batch the slates are to be read as of, and how the application is doing. All counts are since
the store was made.
"""

from __future__ import annotations

import msgspec


class SourceProgress(msgspec.Struct):
    """What is known of a source."""

    highest: int | None = None
    """The greatest ts seen."""
    clock: int = 0
    """The clock of the last batch that brought any of its records."""
    position: list[int] | None = None
    """How far its records were taken in, as its kind of source counts; None if none were."""
    events: int = 0


class Progress(msgspec.Struct):
    """The driver's knowledge after the last committed batch."""

    batch: int = -1
    clock: int = 0
    horizon: int | None = None
    highest: int | None = None
    sources: dict[str, SourceProgress] = {}
    waiting: int = 0
    least_waiting: int | None = None
    least_timer: int | None = None
    least_wall: int | None = None
    feedback: int = 0
    least_feedback: int | None = None
    events: int = 0
    late: int = 0
    dead_letters: int = 0
    processed: dict[str, int] = {}
    query: str = ""
    """The id of the Spark query whose batches these are."""
    offsets: int = 0
    """The checksum of Spark's offset file of this batch."""
    staged: list[str] = []
    """The files of this batch's output; anything else that lies there is of a try that failed."""
    emitted: dict[str, int] = {}
    """Events put onto each stream, the sources' included."""
    spent: dict[str, int] = {}
    """Microseconds that each function has taken, over all tasks."""
    waiting_at: dict[str, int] = {}
    """Events that wait for the horizon, by the function that they wait at."""
    slates: dict[str, int] = {}
    """How many slates each update has."""
    failed: dict[str, int] = {}
    """Dead letters by function; by source for records that did not become events."""
    seconds: float = 0.0
    """What all batches took, together."""
    last_seconds: float = 0.0
    latency: int | None = None
    """Microseconds from the oldest record of the last batch that had any to the commit."""
    written: int = 0
    """The wall time of the commit."""


def decoded(data: bytes | None) -> Progress:
    """The progress that a store keeps; of one that has none yet, that of before the first batch."""
    return Progress() if data is None else msgspec.json.decode(data, type=Progress)
