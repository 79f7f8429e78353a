"""The state of the application: GET /status, GET /healthz, GET /history.

Times are microseconds since the epoch, durations seconds. None: unknown, or it does not apply.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from millstream.messages.jobs import JobSummary


class HealthAnswer(msgspec.Struct, frozen=True):
    """The store can be read."""

    ok: bool
    running: bool
    """True if the application runs."""
    batch: int
    """The last committed batch; -1 before the first."""


class History(msgspec.Struct, frozen=True):
    """The last minutes in equal steps. All lists have the same length; None: not known."""

    times: list[int]
    """The beginning of each step, in seconds since the epoch."""
    events: list[float | None]
    """Events per second."""
    latency: list[float | None]
    """The worst latency of a batch, in seconds."""
    p50: list[float | None]
    p99: list[float | None]
    waited: list[float | None]
    """The part of the latency for which events waited for the horizon."""
    batches: list[int | None]
    busy: list[float | None]
    """The share of the time during which batches ran."""


class DeliveryCounts(msgspec.Struct, frozen=True):
    """The deliveries to one function, or to all, and what became of them."""

    taken: int
    processed: int
    dropped: int
    diverted: int
    waiting: int
    dead_letters: int
    late: int
    retried: int
    residual: int
    """Deliveries that are not accounted for: 0, unless Millstream has a bug."""


class IntakeStatus(msgspec.Struct, frozen=True):
    """The limits on the intake of the next batch."""

    bytes: int | None
    pressure: float
    """At 1, throttled updates stop the sources."""
    held: int
    """Events that are held back."""


class LatencyQuantiles(msgspec.Struct, frozen=True):
    """The value of the last batch, and quantiles over the last minute, in seconds."""

    last: float | None
    p50: float | None
    p99: float | None


class BatchLatency(LatencyQuantiles, frozen=True):
    """From the arrival of a batch's oldest event to the batch's commit."""

    waited: LatencyQuantiles
    """The part of it that events spent waiting for the horizon."""


class SourceStatus(msgspec.Struct, frozen=True):
    """A source, and how far the application is behind it."""

    name: str
    address: str
    events: int
    rate: float
    lag_bytes: int | None
    lag_events: int | None
    lag_seconds: float | None
    """The age of the oldest record that was not taken in yet."""
    highest: int | None
    """The latest event time."""
    dead_letters: int
    lost: int
    """Records that were removed before they could be read."""
    lag_growth: float | None
    """Events per second by which the lag grows."""


class StreamStatus(msgspec.Struct, frozen=True):
    """A stream, and the events that were put onto it."""

    name: str
    events: int
    rate: float


class LargestSlate(msgspec.Struct, frozen=True):
    """The key of an update's largest slate."""

    key: str
    bytes: int


class FunctionStatus(msgspec.Struct, frozen=True):
    """A map or an update. The fields from `slates` on are None for a map."""

    name: str
    kind: str
    processed: int
    rate: float
    seconds: float
    """The time that it took, over all tasks."""
    microseconds: float | None
    """The time per event."""
    busy: float
    """The busy share of the last minute; over 1 if several cores worked at once."""
    dead_letters: int
    waiting: int
    """Events that wait for the horizon."""
    deliveries: DeliveryCounts
    slates: int | None
    swept: int | None
    evicted: int | None
    unranked: int | None
    largest: LargestSlate | None


class OutputStatus(msgspec.Struct, frozen=True):
    """An output, and the error that its sink fails with."""

    name: str
    address: str
    error: str | None


class FunctionQueue(msgspec.Struct, frozen=True):
    """Events that wait at a function."""

    function: str
    waiting: int


class SinkTrouble(msgspec.Struct, frozen=True):
    """A sink or log that fails, for which batches wait."""

    name: str
    since: int
    error: str


class ActionRetries(msgspec.Struct, frozen=True):
    """The failed tries of the event that an action is at."""

    since: int
    tries: int
    error: str


class ActionStatus(msgspec.Struct, frozen=True):
    """An action, and the events that it carries out."""

    name: str
    address: str
    done: int
    waiting: int
    failed: int
    """Dead letters that were not put back."""
    dead_letters: int
    missed: int
    retrying: ActionRetries | None
    trouble: str | None


class MirrorFreshness(msgspec.Struct, frozen=True):
    """The freshness of a mirror of a shared store.

    Its answers are as of the last batch that was committed at time `asked`, or a later one.
    """

    place: str
    shards: list[int] | None
    """The shards that the mirror has; None: all."""
    asked: int
    """When the place last answered, in microseconds since the epoch."""
    asked_age: float
    """Seconds since `asked`."""
    error: str | None
    """Why the place does not answer now; None if it does."""


class LettersLeft(msgspec.Struct, frozen=True):
    """The letters that are in the store's logs and were not retried."""

    dead_letters: int
    late: int


class ServerStatus(msgspec.Struct, frozen=True):
    """The server itself, since it started."""

    since: int
    requests: int
    accepted: int
    """Events accepted."""
    refused: int
    """Lines that did not become events."""
    answers: dict[str, int]
    """Answers by the class of their status code, such as 2xx."""
    url: str
    version: str
    store: str


class Attention(msgspec.Struct, frozen=True):
    """Something that an operator should look at."""

    kind: str
    level: Literal["bad", "warning"]
    text: str
    panel: str
    """The panel of the page that shows more, as named in the page's address."""


class Status(msgspec.Struct, frozen=True):
    """The state of the application as of the last committed batch."""

    app: str
    order: str
    running: bool
    batch: int
    """The last committed batch; -1 before the first."""
    written: int | None
    """When it was committed."""
    age: float | None
    """Seconds since then."""
    clock: int | None
    events: int
    late: int
    dead_letters: int
    letters_left: LettersLeft
    waiting: int
    deliveries: DeliveryCounts
    intake: IntakeStatus
    feedback: int
    """Feedback events that are kept for the next batch."""
    horizon: int | None
    """The progress of event time."""
    rate: float
    """Events per second over the last ten seconds."""
    seconds: float
    """The time that all batches took."""
    batch_seconds: float | None
    """The time of the last batch."""
    latency: BatchLatency
    sources: list[SourceStatus]
    streams: list[StreamStatus]
    functions: list[FunctionStatus]
    outputs: list[OutputStatus]
    queues: list[FunctionQueue]
    """The functions at which most events wait."""
    slowest: list[str]
    """The busiest functions."""
    troubles: list[SinkTrouble]
    actions: list[ActionStatus]
    jobs: dict[str, JobSummary]
    mirror: MirrorFreshness | None
    server: ServerStatus
    attention: list[Attention]
    """Conditions that need an operator's attention, the most urgent first."""
