"""The settings of a deployment: addresses of sources and sinks, the store, batch sizes and so on.

A setting may be given in four places. Flags win over `MILLSTREAM_*` variables, these over the TOML
file, and that over code (`app.settings`, `app.run(**settings)`); addresses are merged name by name.
A wrong setting is refused before Spark is loaded; the error names the place where it was set.

In the environment, `MILLSTREAM_SHARDS` is `shards`, and `MILLSTREAM_SOURCE_CHECKINS` (or `_SINK_`)
is the address of `checkins`, with `_` for characters that a variable's name cannot hold. Likewise,
`MILLSTREAM_ACTION_NOTIFY` is the address of the action `notify`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any, Literal

from millstream.errors import DefinitionError
from millstream.model.app import AppDefinition
from millstream.model.function import RESERVED_STREAMS, Update
from millstream.model.place import shown_path
from millstream.model.workflow import Workflow
from millstream.nearest import did_you_mean
from millstream.places.host_cache import CACHE, working_folder
from millstream.settings.cluster_options import check_cluster
from millstream.settings.setting_values import DAY, MIB, MINUTE, PARSERS, SECOND, check_form
from millstream.sources.address import LOG

Lane = Literal["auto", "one-task", "shuffled"]
SERVED = (
    *("host", "port", "hosts", "token_file", "tokens", "tls_cert", "tls_key"),
    *("trusted_proxies", "access_log"),
    *("max_body", "rate", "connections", "fan_out", "backlog_bytes", "retain_age", "retain_bytes"),
)
"""The settings of the server."""
ADDRESSED = ("sources", "sinks", "actions")
"""The settings that hold addresses, by stream or action."""
_FLAGS = {
    "sources": "source",
    "sinks": "sink",
    "actions": "action",
    "hosts": "allow-host",
    "trusted_proxies": "trusted-proxy",
    "limits": "limit",
    "spark": "conf",
}
"""Flags whose name differs from their setting's."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of one run. Made by `resolve`, which checks them against the application."""

    app: str
    store: Path
    """The directory of the slates and of all other stored data; for a shared store, the driver's
    working folder, which may be lost."""
    sources: dict[str, str] = field(default_factory=dict)
    """Each source's address, FORMAT:PATH; an event log in the store if none is given."""
    sinks: dict[str, str] = field(default_factory=dict)
    """Addresses of output streams; also of 'late' and 'deadletters'."""
    shards: int | None = None
    """The number of shards, fixed when a store is created; None: the store's, 16 for a new one."""
    tasks: int | None = None
    """Tasks of the shuffled lane; None: the number of cores."""
    available_now: bool = False
    """Process the input that is there, then stop."""
    final: bool = False
    """The input is complete: end event time, so that everything that waits for it comes out."""
    batch_bytes: int = 32 * MIB
    """The approximate most input of a batch, in bytes."""
    batch_seconds: int = 2 * SECOND
    """The approximate time of a batch, in microseconds: slower batches take less input."""
    limits: dict[str, int] = field(default_factory=dict)
    """Limits of updates, which replace those of the application."""
    small_bytes: int = MIB
    """A batch up to this size takes the one-task lane."""
    lane: Lane = "auto"
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
    serve: bool | None = None
    """Run a server beside the application; None: if the run waits for input."""
    host: str = "127.0.0.1"
    port: int = 8470
    hosts: tuple[str, ...] = ()
    """Host names that the server accepts besides its own."""
    token_file: Path | None = None
    """The file with the secret that every request must carry; or `MILLSTREAM_TOKEN` holds it."""
    tokens: Path | None = None
    """A file of tokens, each with its rights; `millstream tokens` writes it."""
    trusted_proxies: tuple[str, ...] = ()
    """Addresses and networks of proxies that are trusted to name the client they forward."""
    access_log: str = ""
    """The file of the access log; `-`: stderr."""
    tls_cert: Path | None = None
    tls_key: Path | None = None
    max_body: int = 16 * MIB
    """The largest request that the server accepts, in bytes."""
    rate: int = 20_000
    """The most requests per second from one address."""
    connections: int | None = None
    """The most connections of the server; None: 4,096, or as many as the system allows."""
    fan_out: int = 32
    """The most agents that send to the root itself, if others can be their parents."""
    backlog_bytes: int = 4096 * MIB
    """The most unprocessed input, in bytes, before the server refuses more events."""
    retain_age: int | None = 7 * DAY
    """The time that event logs keep records after every reader has them, in microseconds; None: for
    ever."""
    retain_bytes: int | None = 1024 * MIB
    """The most bytes that an event log keeps of such records; None: all."""
    slate_warn: int | None = None
    """The bytes of a slate from which a warning is given; None: the application's."""
    slate_limit: int | None = None
    """The most bytes of a slate; None: the application's."""
    flush: int | None = None
    """Microseconds between two flushes to disk; None: every batch is flushed ("batch")."""
    check_store: bool = True
    """Read every row of the store once before the first batch."""
    sink_patience: int = 10 * MINUTE
    """The time for which a failing sink is retried before the run ends, in microseconds."""
    actions: dict[str, str] = field(default_factory=dict)
    """The address of each action: webhook:URL, line:FILE or stderr."""
    action_tries: int = 8
    """The number of tries after which a record of an action becomes a dead letter."""
    action_patience: int | None = 60 * MINUTE
    """The time after which it becomes one in any case, in microseconds; None: no limit."""
    action_timeout: int = 10 * SECOND
    """The time that a webhook may take to answer, in microseconds."""
    package: Path | None = None
    """The package with the code of the Python jobs, for agents that fetch it."""
    place: str = ""
    """The address of a shared store."""
    accept_loss: tuple[str, ...] = ()
    """The losses that a changed application may cause: names from `millstream plan`, or 'all'."""
    standby: bool = False
    """Wait until no other driver leads."""
    lease: int = 10 * SECOND
    """The time without news from a leader after which a standby takes over, in microseconds."""
    cache: str = ""
    """The folder in which each host keeps its copies of a shared store; empty: `MILLSTREAM_CACHE`,
    or a folder among its temporary files."""

    @property
    def shown_store(self) -> str:
        """The store as the user names it."""
        return self.place or shown_path(self.store)

    def applied(self, workflow: Workflow) -> Workflow:
        """Returns the workflow with the limits and sizes of these settings."""
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


def resolve(
    app: AppDefinition,
    toml: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
    flags: Mapping[str, Any] | None = None,
    code: Mapping[str, Any] | None = None,
    *,
    called: str = "app.run",
) -> Settings:
    """Returns the checked settings of a run; DefinitionError says what is wrong and where it was
    set.

    `toml`, `flags` and `code` map settings to values, as `app.settings` does; None means not set.
    `code` holds the arguments of `app.run`, or of the function that `called` names.
    """
    workflow = app.checked()
    values: dict[str, Any] = {key: {} for key in ADDRESSED}
    layers = chain(  # the weakest first
        _known(app.settings, "app.settings[{!r}]"),
        _known(code or {}, called + "({}=)"),
        _known(toml or {}, "{!r} in the TOML file"),
        _from_environment(workflow, environ or {}),
        _known(flags or {}, "--{}"),
    )
    for key, value, where in layers:
        parsed = PARSERS[key](value, where)
        if key in ADDRESSED:
            for name in parsed:
                _check_stream(workflow, key, name, where)
            values[key].update(parsed)
        elif key == "limits":
            for name in parsed:
                _check_limited(workflow, name, where)
            values.setdefault(key, {}).update(parsed)
        elif key == "spark":
            values.setdefault(key, {}).update(parsed)
        else:
            values[key] = parsed
    values.setdefault("store", default_store(app.name))
    values["cache"] = str(values.get("cache", ""))
    if isinstance(values["store"], str):
        values["place"] = values["store"]
        values["store"] = working_folder(values["place"], "driver", values["cache"])
        if values.get("flush") is not None:
            raise DefinitionError(
                "flush must be left out, or 'batch', for a shared store: each batch is durable "
                "when it is committed"
            )
    if values.get("standby") and not values.get("place"):
        raise DefinitionError(
            "standby is for a shared store, such as s3://BUCKET/PREFIX; the store is a folder, "
            f"{values['store']}, which one driver holds at a time"
        )
    check_cluster(values, environ or {})
    if values["store"].exists() and not values["store"].is_dir():
        raise DefinitionError(f"store {values['store']} must be a directory; it is a file")
    if values.get("final"):
        values["available_now"] = True  # the input is complete, so there is nothing to wait for
    for source in workflow.sources:
        if source.name not in values["sources"]:
            values["sources"][source.name] = LOG
            if values.get("available_now"):
                _check_log(app, source.name, values["store"], code is None)
        check_form(source, values["sources"][source.name])
    return Settings(app.name, **values)


def _check_log(app: AppDefinition, source: str, store: Path, command: bool) -> None:
    """DefinitionError if the log of a source without an address is missing, in a run that does not
    wait for input."""
    if not (store / "logs" / source).is_dir():
        advice = (
            f"--source {source}=json:DIR, or in the TOML file"
            if command
            else f"app.run(sources={{{source!r}: 'json:DIR'}})"
        )
        raise DefinitionError(
            f"source {source!r} of app {app.name!r} has no address, and nothing was sent to it; "
            f"give it one with {advice}"
        )


def served_settings(
    store: Path | str, environ: Mapping[str, str], flags: Mapping[str, Any]
) -> Settings:
    """Returns the settings of a server for a store without its application: `store` is a folder, or
    the address of a place."""
    variables = {key: environ.get(f"MILLSTREAM_{key.upper()}") or None for key in SERVED}
    values = {}
    for key, value, where in chain(
        _known(variables, "MILLSTREAM_{}"), _known({key: flags.get(key) for key in SERVED}, "--{}")
    ):
        values[key] = PARSERS[key](value, where)
    cache = str(flags.get("cache") or "")
    if isinstance(store, str):
        return Settings(
            "", working_folder(store, "driver", cache), place=store, cache=cache, **values
        )
    return Settings("", store, **values)


def store_of(
    app: AppDefinition,
    toml: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
) -> Path | str:
    """Returns the application's store alone, for commands that only read."""
    variable = {"store": (environ or {}).get("MILLSTREAM_STORE") or None}
    store: Path | str = default_store(app.name)
    for layer in (app.settings, toml or {}, variable):
        if layer.get("store") is not None:
            store = PARSERS["store"](layer["store"], "store")
    return store


def default_store(app: str) -> Path:
    return Path(".millstream") / app


def _known(given: Mapping[str, Any], place: str) -> Iterator[tuple[str, Any, str]]:
    """Yields (setting, value, where it was set) of one layer; DefinitionError for unknown names."""
    for key, value in given.items():
        if key not in PARSERS:
            raise DefinitionError(f"unknown setting {key!r}; {did_you_mean(key, PARSERS)}")
        if value is not None:
            name = _FLAGS.get(key, key.replace("_", "-")) if place.startswith("--") else key
            yield key, value, place.format(name)


def _from_environment(
    workflow: Workflow, environ: Mapping[str, str]
) -> Iterator[tuple[str, Any, str]]:
    for variable, text in environ.items():
        prefix, _, rest = variable.partition("_")
        if prefix != "MILLSTREAM" or not text or variable == CACHE:
            continue  # CACHE applies to this host only, and must not reach the others
        kind, _, stream = rest.partition("_")
        if stream and kind in ("SOURCE", "SINK", "ACTION") and rest.lower() not in PARSERS:
            key = f"{kind.lower()}s"
            names = {re.sub(r"[.-]", "_", s).upper(): s for s in _streams(workflow, key)}
            yield key, {names.get(stream, stream): text}, variable
        elif rest.lower() in PARSERS and rest.lower() not in ADDRESSED:
            yield rest.lower(), text, variable
        # other variables belong to other parts of Millstream


def _check_limited(workflow: Workflow, name: str, where: str) -> None:
    """DefinitionError unless `name` is an update that can have a limit. An aggregate needs none,
    and an immediate update must not hold events back."""
    known = [
        update.name
        for update in workflow.updates
        if update.algebra is None and not update.immediate
    ]
    if name not in known:
        hint = did_you_mean(name, known)
        raise DefinitionError(
            f"{where}: {name!r} is not an update of app {workflow.name!r} that can have a limit; "
            f"{hint}"
        )


def _streams(workflow: Workflow, key: str) -> list[str]:
    """Returns the streams or actions that may have an address in this setting."""
    if key == "sources":
        return [source.name for source in workflow.sources]
    if key == "actions":
        return list(workflow.actions)
    return [*workflow.outputs, *RESERVED_STREAMS]


def _check_stream(workflow: Workflow, key: str, name: str, where: str) -> None:
    known = _streams(workflow, key)
    if name not in known:
        hint = did_you_mean(name, known)
        if key == "sinks" and name in workflow.streams:
            hint = f"declare it with app.output({name!r})"
        elif key == "actions" and name in workflow.streams:
            hint = f"declare it with app.action({name!r})"
        role = {"sources": "a source", "actions": "an action"}.get(key, "an output")
        raise DefinitionError(f"{where}: {name!r} is not {role} of app {workflow.name!r}; {hint}")
