"""The parts of a run's settings, each of which can be explained in a sentence.

A field has the name that users give its setting: `batch_bytes` is `--batch-bytes`,
`MILLSTREAM_BATCH_BYTES` and `batch_bytes` in TOML and in code. No two parts share a name, so users
need not know the parts.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from millstream.model.function import Update
from millstream.model.place import shown_path
from millstream.model.workflow import Workflow
from millstream.settings.setting_values import DAY, MIB, MINUTE, SECOND

Lane = Literal["auto", "one-task", "shuffled"]


@dataclass(frozen=True, slots=True)
class StorageSettings:
    """Where a run keeps slates and all other stored data, and who may lead on it."""

    store: Path
    """The directory of the slates and of all other stored data; for a shared store, the driver's
    working folder, which may be lost."""
    place: str = ""
    """The address of a shared store."""
    cache: str = ""
    """The folder in which each host keeps its copies of a shared store; empty: `MILLSTREAM_CACHE`,
    or a folder among its temporary files."""
    shards: int | None = None
    """The number of shards, fixed when a store is created; None: the store's, 16 for a new one."""
    flush: int | None = None
    """Microseconds between two flushes to disk; None: every batch is flushed ("batch")."""
    check_store: bool = True
    """Read every row of the store once before the first batch."""
    accept_loss: tuple[str, ...] = ()
    """The losses that a changed application may cause: names from `millstream plan`, or 'all'."""
    standby: bool = False
    """Wait until no other driver leads."""
    lease: int = 10 * SECOND
    """The time without news from a leader after which a standby takes over, in microseconds."""

    @property
    def shown(self) -> str:
        """The store as the user names it."""
        return self.place or shown_path(self.store)


@dataclass(frozen=True, slots=True)
class StreamAddresses:
    """Where events come from, and where output goes."""

    sources: dict[str, str] = field(default_factory=dict)
    """Each source's address, FORMAT:PATH; an event log in the store if none is given."""
    sinks: dict[str, str] = field(default_factory=dict)
    """Addresses of output streams; also of 'late' and 'deadletters'."""
    actions: dict[str, str] = field(default_factory=dict)
    """The address of each action: webhook:URL, line:FILE or stderr."""


@dataclass(frozen=True, slots=True)
class BatchSettings:
    """How much input a batch takes, how it is run, and whether a run waits for more."""

    batch_bytes: int = 32 * MIB
    """The approximate most input of a batch, in bytes."""
    batch_seconds: int = 2 * SECOND
    """The approximate time of a batch, in microseconds: slower batches take less input."""
    small_bytes: int = MIB
    """A batch up to this size takes the one-task lane."""
    lane: Lane = "auto"
    tasks: int | None = None
    """Tasks of the shuffled lane; None: the number of cores."""
    available_now: bool = False
    """Process the input that is there, then stop."""
    final: bool = False
    """The input is complete: end event time, so that everything that waits for it comes out."""


@dataclass(frozen=True, slots=True)
class UpdateSettings:
    """Limits of updates and of their slates, which replace those of the application."""

    limits: dict[str, int] = field(default_factory=dict)
    """The most events that each shard of an update takes in a batch, by update."""
    slate_warn: int | None = None
    """The bytes of a slate from which a warning is given; None: the application's."""
    slate_limit: int | None = None
    """The most bytes of a slate; None: the application's."""

    def applied(self, workflow: Workflow) -> Workflow:
        """Returns the workflow with these limits and sizes."""
        warn = workflow.slate_warn if self.slate_warn is None else self.slate_warn
        limit = workflow.slate_limit if self.slate_limit is None else self.slate_limit
        if self.limits:
            functions = tuple(
                replace(function, limit=self.limits.get(function.name, function.limit))
                if isinstance(function, Update)
                else function
                for function in workflow.functions
            )
            workflow = replace(workflow, functions=functions)
        if (warn, limit) == (workflow.slate_warn, workflow.slate_limit):
            return workflow
        return replace(workflow, slate_warn=warn, slate_limit=limit)


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """The Spark that runs the batches: its master, its own settings, and the way to its hosts."""

    master: str = "local[*]"
    memory: str = "1g"
    """Memory of Spark's own process, without its Python workers, where the functions run."""
    spark: dict[str, str] = field(default_factory=dict)
    """Settings of Spark itself, by name."""
    listen: str = ""
    """The address of this machine at which executors reach the driver; empty: all run here."""
    secret_file: Path | None = None
    """The file with the secret of a standalone cluster; or `MILLSTREAM_SPARK_SECRET` holds it."""
    encrypt: bool = True
    """If the driver listens: require the secret and encrypt all traffic."""
    python: str = ""
    """The Python of executors on other machines; empty: `pythonX.Y`, this Python's version."""
    runtime: str = ""
    """The archive with the code for executors on other machines, or `installed`; empty: one is
    made."""


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """Where the HTTP server listens, whom it lets in, and how much of each it accepts."""

    host: str = "127.0.0.1"
    port: int = 8470
    hosts: tuple[str, ...] = ()
    """Host names that the server accepts besides its own."""
    token_file: Path | None = None
    """The file with the secret that every request must carry; or `MILLSTREAM_TOKEN` holds it."""
    tokens: Path | None = None
    """A file of tokens, each with its rights; `millstream tokens` writes it."""
    tls_cert: Path | None = None
    tls_key: Path | None = None
    trusted_proxies: tuple[str, ...] = ()
    """Addresses and networks of proxies that are trusted to name the client they forward."""
    access_log: str = ""
    """The file of the access log; `-`: stderr."""
    max_body: int = 16 * MIB
    """The largest request that the server accepts, in bytes."""
    rate: int = 20_000
    """The most requests per second from one address."""
    connections: int | None = None
    """The most connections of the server; None: 4,096, or as many as the system allows."""
    fan_out: int = 32
    """The most agents that send to the root itself, if others can be their parents."""


@dataclass(frozen=True, slots=True)
class LogSettings:
    """How much the event logs take in, and how long they keep it."""

    backlog_bytes: int = 4096 * MIB
    """The most unprocessed input, in bytes, before the server refuses more events."""
    retain_age: int | None = 7 * DAY
    """The time that event logs keep records after every reader has them, in microseconds; None: for
    ever."""
    retain_bytes: int | None = 1024 * MIB
    """The most bytes that an event log keeps of such records; None: all."""


@dataclass(frozen=True, slots=True)
class DeliverySettings:
    """How long sinks and actions that fail are tried again."""

    sink_patience: int = 10 * MINUTE
    """The time for which a failing sink is retried before the run ends, in microseconds."""
    action_tries: int = 8
    """The number of tries after which a record of an action becomes a dead letter."""
    action_patience: int | None = 60 * MINUTE
    """The time after which it becomes one in any case, in microseconds; None: no limit."""
    action_timeout: int = 10 * SECOND
    """The time that a webhook may take to answer, in microseconds."""
