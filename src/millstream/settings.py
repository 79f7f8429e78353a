"""What a deployment sets: where events come from and go to, where slates live, how much at once.

A setting may be given in four places. Flags win over `MILLSTREAM_*` variables, these over the TOML
file, and that over code (`app.settings`, `app.run(**settings)`); addresses are merged name by name.
Whatever is wrong is refused before Spark is loaded, with the place it came from.

In the environment, `MILLSTREAM_SHARDS` is `shards`, and `MILLSTREAM_SOURCE_CHECKINS` (or `_SINK_`)
is the address of `checkins`, with `_` for whatever a variable's name cannot hold. So is
`MILLSTREAM_ACTION_NOTIFY` that of the action `notify`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any, Literal

from millstream.errors import DefinitionError
from millstream.model.app import App
from millstream.model.function import RESERVED_STREAMS, Update
from millstream.model.workflow import Workflow
from millstream.nearest import did_you_mean
from millstream.setting_values import DAY, MIB, MINUTE, PARSERS, SECOND, check_form
from millstream.sources.address import LOG

Lane = Literal["auto", "one-task", "shuffled"]
SERVED = (
    *("host", "port", "hosts", "token_file", "tls_cert", "tls_key"),
    *("max_body", "rate", "connections", "fan_out", "backlog_bytes", "retain_age", "retain_bytes"),
)
"""The settings of the server."""
ADDRESSED = ("sources", "sinks", "actions")
"""The settings that are addresses, by name."""
_FLAGS = {
    "sources": "source",
    "sinks": "sink",
    "actions": "action",
    "hosts": "allow-host",
    "limits": "limit",
}
"""Flags that are not called as their setting is."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How one application runs. Made by `resolve`, which checks it against the application."""

    app: str
    store: Path
    """The directory of the slates and of all else that is kept."""
    sources: dict[str, str] = field(default_factory=dict)
    """Each source's address, FORMAT:PATH; an event log in the store if none is given."""
    sinks: dict[str, str] = field(default_factory=dict)
    """Addresses of output streams; also of 'late' and 'deadletters'."""
    shards: int | None = None
    """Fixed for a store once it is made; None: as the store has, 16 for a new one."""
    tasks: int | None = None
    """Tasks of the shuffled lane; None: as many as there are cores."""
    available_now: bool = False
    """Process what is there, then stop."""
    final: bool = False
    """There is nothing to come: end event time, so that all that waits for it comes out."""
    batch_bytes: int = 32 * MIB
    """About how much input one batch takes, at most."""
    batch_seconds: int = 2 * SECOND
    """About how long a batch is to take, in microseconds: it takes less input when it is slower."""
    limits: dict[str, int] = field(default_factory=dict)
    """Limits of updates, in the place of those that the application gives."""
    small_bytes: int = MIB
    """A batch up to this size takes the one-task lane."""
    lane: Lane = "auto"
    master: str = "local[*]"
    memory: str = "1g"
    """Memory of Spark's own process; its Python workers, where the functions run, come on top."""
    serve: bool | None = None
    """Whether a server runs beside the application; None: if the run waits for input."""
    host: str = "127.0.0.1"
    port: int = 8470
    hosts: tuple[str, ...] = ()
    """Names, besides its own, that the server may be called by."""
    token_file: Path | None = None
    """The file with the secret that every request must bring; or `MILLSTREAM_TOKEN` holds it."""
    tls_cert: Path | None = None
    tls_key: Path | None = None
    max_body: int = 16 * MIB
    """The largest request that the server takes."""
    rate: int = 20_000
    """Requests a second that one address may send."""
    connections: int | None = None
    """How many connections the server has at once; None: 4,096, or as many as the system allows."""
    fan_out: int = 32
    """How many agents send to the root itself, if others can be their parents."""
    backlog_bytes: int = 4096 * MIB
    """How far the application may be behind before no more events are taken."""
    retain_age: int | None = 7 * DAY
    """How long event logs keep records that every reader has, in microseconds; None: for ever."""
    retain_bytes: int | None = 1024 * MIB
    """How much an event log keeps of them; None: all."""
    slate_warn: int | None = None
    """Bytes of a slate from which on it is warned about; None: as the application says."""
    slate_limit: int | None = None
    """Bytes that no slate may be over; None: as the application says."""
    flush: int | None = None
    """Microseconds between two flushes to disk; None: every batch is flushed ("batch")."""
    check_store: bool = True
    """Whether a run reads every row of the store once before its first batch."""
    sink_patience: int = 10 * MINUTE
    """How long a sink that fails is tried again before the run ends, in microseconds."""
    actions: dict[str, str] = field(default_factory=dict)
    """Where each action is carried out: webhook:URL, line:FILE or stderr."""
    action_tries: int = 8
    """After so many tries a record of an action is a dead letter."""
    action_patience: int | None = 60 * MINUTE
    """Or after so long, in microseconds; None: however long the tries take."""
    action_timeout: int = 10 * SECOND
    """How long a webhook may take to answer, in microseconds."""
    package: Path | None = None
    """The package with the code of the Python jobs, for agents that fetch it."""

    def applied(self, workflow: Workflow) -> Workflow:
        """The workflow with what these settings change of its meaning."""
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
    app: App,
    toml: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
    flags: Mapping[str, Any] | None = None,
    code: Mapping[str, Any] | None = None,
    *,
    called: str = "app.run",
) -> Settings:
    """The settings of a run, checked; DefinitionError says what is wrong and where it was set.

    `toml`, `flags` and `code` (the arguments of `app.run`, or of what is `called` otherwise) are by
    setting, as `app.settings` is; a value of None is not given.
    """
    workflow = app.checked()
    values: dict[str, Any] = {key: {} for key in ADDRESSED}
    given = chain(  # the weakest first
        _known(app.settings, "app.settings[{!r}]"),
        _known(code or {}, called + "({}=)"),
        _known(toml or {}, "{!r} in the TOML file"),
        _from_environment(workflow, environ or {}),
        _known(flags or {}, "--{}"),
    )
    for key, value, where in given:
        parsed = PARSERS[key](value, where)
        if key in ADDRESSED:
            for name in parsed:
                _check_stream(workflow, key, name, where)
            values[key].update(parsed)
        elif key == "limits":
            for name in parsed:
                _check_limited(workflow, name, where)
            values.setdefault(key, {}).update(parsed)
        else:
            values[key] = parsed
    values.setdefault("store", default_store(app.name))
    if values["store"].exists() and not values["store"].is_dir():
        raise DefinitionError(f"store {values['store']} must be a directory; it is a file")
    if values.get("final"):
        values["available_now"] = True  # nothing is to come, so there is nothing to wait for
    for source in workflow.sources:
        if source.name not in values["sources"]:
            values["sources"][source.name] = LOG
            if values.get("available_now"):
                _check_log(app, source.name, values["store"], code is None)
        check_form(source, values["sources"][source.name])
    return Settings(app.name, **values)


def _check_log(app: App, source: str, store: Path, command: bool) -> None:
    """A run that does not wait must find something: a source without an address, its log."""
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


def served_settings(store: Path, environ: Mapping[str, str], flags: Mapping[str, Any]) -> Settings:
    """The settings of a server for a store whose application is not at hand."""
    given = {key: environ.get(f"MILLSTREAM_{key.upper()}") or None for key in SERVED}
    values = {}
    for key, value, where in chain(
        _known(given, "MILLSTREAM_{}"), _known({key: flags.get(key) for key in SERVED}, "--{}")
    ):
        values[key] = PARSERS[key](value, where)
    return Settings("", store, **values)


def store_of(
    app: App, toml: Mapping[str, Any] | None = None, environ: Mapping[str, str] | None = None
) -> Path:
    """The application's store alone, for commands that only read."""
    variable = {"store": (environ or {}).get("MILLSTREAM_STORE") or None}
    store = default_store(app.name)
    for layer in (app.settings, toml or {}, variable):
        if layer.get("store") is not None:
            store = PARSERS["store"](layer["store"], "store")
    return store


def default_store(app: str) -> Path:
    return Path(".millstream") / app


def _known(given: Mapping[str, Any], place: str) -> Iterator[tuple[str, Any, str]]:
    """(setting, value, where it was set) of one layer, its names checked."""
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
        if prefix != "MILLSTREAM" or not text:
            continue
        kind, _, stream = rest.partition("_")
        if stream and kind in ("SOURCE", "SINK", "ACTION") and rest.lower() not in PARSERS:
            key = f"{kind.lower()}s"
            names = {re.sub(r"[.-]", "_", s).upper(): s for s in _streams(workflow, key)}
            yield key, {names.get(stream, stream): text}, variable
        elif rest.lower() in PARSERS and rest.lower() not in ADDRESSED:
            yield rest.lower(), text, variable
        # any other belongs to another part of Millstream


def _check_limited(workflow: Workflow, name: str, where: str) -> None:
    """A limit must be that of an update, and not of one with an algebra, which needs none."""
    known = [update.name for update in workflow.updates if update.algebra is None]
    if name not in known:
        hint = did_you_mean(name, known)
        raise DefinitionError(
            f"{where}: {name!r} is not an update of app {workflow.name!r} that can have a limit; "
            f"{hint}"
        )


def _streams(workflow: Workflow, key: str) -> list[str]:
    """The streams that may have an address."""
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
        what = {"sources": "a source", "actions": "an action"}.get(key, "an output")
        raise DefinitionError(f"{where}: {name!r} is not {what} of app {workflow.name!r}; {hint}")
