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


class Large(msgspec.Struct, frozen=True, array_like=True):
    """A slate over the application's `slate_warn`."""

    key: str
    bytes: int
    """Of its JSON; of a table, of the largest entry that was set."""
    batch: int
    """The batch that it was last seen in."""


class Unranked(msgspec.Struct, frozen=True, array_like=True):
    """Slates whose priority could not be told, and the last of them."""

    count: int
    key: str
    error: str
    batch: int
    """The batch of the last one."""


class FinalPhase(msgspec.Struct):
    """A final phase (`--final`) that has begun and is not over: see engine/final_phase.py."""

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
    """How far timers of the updates that are being closed go, once some have fired."""


class Ended(msgspec.Struct, frozen=True):
    """Where a final phase has ended event time."""

    at: int
    """Timers up to it are left until event time goes on."""
    events: int
    """How many events the sources had brought, late ones left out."""


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
    """What the sinks know these batches by: the store's id; in a store that was made with format 2,
    the id of Spark's query."""
    staged: list[str] = []
    """The files of this batch's output; anything else that lies there is of a try that failed."""
    unpublished: list[tuple[int, list[str]]] = []
    """Batches, this one too, that are not flushed yet, with the files of their output."""
    last_batches: list[int] = []
    """For each shard the last batch that changed it: a shard that knows less has lost a commit."""
    soft: str = ""
    """The layer that the batch is in until it is flushed; empty if each batch is flushed."""
    emitted: dict[str, int] = {}
    """Events put onto each stream, the sources' included."""
    spent: dict[str, int] = {}
    """Microseconds that each function has taken, over all tasks."""
    waiting_at: dict[str, int] = {}
    """Events that wait, for the horizon or because they were too many, by function."""
    slates: dict[str, int] = {}
    """How many slates each update has."""
    failed: dict[str, int] = {}
    """Dead letters by function."""
    large: dict[str, Large] = {}
    """The largest slate of each update that has one over `slate_warn`."""
    seconds: float = 0.0
    """What all batches took, together."""
    last_seconds: float = 0.0
    latency: int | None = None
    """Microseconds from the oldest record of the last batch that had any to the commit."""
    written: int = 0
    """The wall time of the commit."""
    taken: dict[str, int] = {}
    """Deliveries to each function: what it is owed, whatever becomes of it."""
    dropped: dict[str, int] = {}
    """Deliveries past an update's limit that were dropped."""
    diverted: dict[str, int] = {}
    """Deliveries past an update's limit that went to its overflow stream."""
    late_at: dict[str, int] = {}
    """Deliveries that were late, by function."""
    refused: dict[str, int] = {}
    """Records that did not become events, by source."""
    refused_at: dict[str, int] = {}
    """Deliveries of such records, by function."""
    timers_failed: dict[str, int] = {}
    """Dead letters of timers, by function."""
    feedback_at: dict[str, int] = {}
    """Feedback events for the next batch, by the function that is to get them."""
    held: int = 0
    """Events that wait because there were too many for a batch."""
    pressure: float = 0.0
    """How full the fullest room for them is: at 1 the sources are stopped."""
    hold: int | None = None
    """How far the horizon may go in the next batch."""
    costs: dict[str, float] = {}
    """Microseconds that an event has cost each function of late."""
    intake: int | None = None
    """Bytes that the next batch is to take, at most; None: not known yet."""
    swept: dict[str, int] = {}
    """Expired slates that were swept in the background, by update."""
    evicted: dict[str, int] = {}
    """Slates that went because there was no room for them, by update."""
    unranked: dict[str, Unranked] = {}
    """Slates whose priority could not be told, by update: each time counts."""
    pace: float | None = None
    """Microseconds of the functions' time that a byte of input has cost of late."""
    stored: dict[str, int] = {}
    """Microseconds of processor time that storing what each function changed has taken."""
    reach: dict[str, int] = {}
    """The longest time that an event of each update has set a timer ahead."""
    final: FinalPhase | None = None
    """The final phase that is under way: it is finished before anything else is done."""
    ended: Ended | None = None
    """Where the last final phase ended event time."""


def decoded(data: bytes | None) -> Progress:
    """The progress that a store keeps; of one that has none yet, that of before the first batch."""
    return Progress() if data is None else msgspec.json.decode(data, type=Progress)
