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
from dataclasses import dataclass, field, fields, replace
from itertools import chain
from pathlib import Path
from typing import Any

from millstream.errors import DefinitionError
from millstream.model.app import AppDefinition
from millstream.model.function import RESERVED_STREAMS
from millstream.model.workflow import Workflow
from millstream.nearest import did_you_mean
from millstream.places.host_cache import CACHE, working_folder
from millstream.settings.cluster_options import check_cluster
from millstream.settings.setting_parts import (
    BatchSettings,
    ClusterSettings,
    DeliverySettings,
    LogSettings,
    ServerSettings,
    StorageSettings,
    StreamAddresses,
    UpdateSettings,
)
from millstream.settings.setting_values import PARSERS, check_form
from millstream.sources.address import LOG

_PARTS: dict[str, type[Any]] = {
    "storage": StorageSettings,
    "addresses": StreamAddresses,
    "batches": BatchSettings,
    "updates": UpdateSettings,
    "cluster": ClusterSettings,
    "server": ServerSettings,
    "logs": LogSettings,
    "delivery": DeliverySettings,
}
PART_OF = {each.name: name for name, kind in _PARTS.items() for each in fields(kind)}
"""The part of `Settings` that a setting is in, by the name that users give it."""
_ADDRESSED = [name for name, part in PART_OF.items() if part == "addresses"]
_SERVED = [name for name, part in PART_OF.items() if part in ("server", "logs")]
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
    storage: StorageSettings
    addresses: StreamAddresses = field(default_factory=StreamAddresses)
    batches: BatchSettings = field(default_factory=BatchSettings)
    updates: UpdateSettings = field(default_factory=UpdateSettings)
    cluster: ClusterSettings = field(default_factory=ClusterSettings)
    server: ServerSettings = field(default_factory=ServerSettings)
    logs: LogSettings = field(default_factory=LogSettings)
    delivery: DeliverySettings = field(default_factory=DeliverySettings)
    serve: bool | None = None
    """Run a server beside the application; None: if the run waits for input."""
    package: Path | None = None
    """The package with the code of the Python jobs, for agents that fetch it."""

    @classmethod
    def of(
        cls,
        app: str,
        store: Path,
        sources: dict[str, str] | None = None,
        sinks: dict[str, str] | None = None,
        **values: Any,
    ) -> Settings:
        """Returns the settings with these values, which are parsed already, by users' names."""
        settings = cls(app, StorageSettings(store))
        return settings.changed(sources=sources or {}, sinks=sinks or {}, **values)

    def changed(self, **values: Any) -> Settings:
        """Returns the same settings with other values, by the names that users give them."""
        changes: dict[str, Any] = {}
        for name, value in values.items():
            if name in PART_OF:
                changes.setdefault(PART_OF[name], {})[name] = value
        whole = {name: value for name, value in values.items() if name not in PART_OF}
        parts = {part: replace(getattr(self, part), **changed) for part, changed in changes.items()}
        return replace(self, **parts, **whole)


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
    values: dict[str, Any] = {key: {} for key in _ADDRESSED}
    layers = chain(  # the weakest first
        _known(app.settings, "app.settings[{!r}]"),
        _known(code or {}, called + "({}=)"),
        _known(toml or {}, "{!r} in the TOML file"),
        _from_environment(workflow, environ or {}),
        _known(flags or {}, "--{}"),
    )
    for key, value, where in layers:
        parsed = PARSERS[key](value, where)
        if key in _ADDRESSED:
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
    return Settings.of(app.name, **values)


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
    variables = {key: environ.get(f"MILLSTREAM_{key.upper()}") or None for key in _SERVED}
    values = {}
    for key, value, where in chain(
        _known(variables, "MILLSTREAM_{}"), _known({key: flags.get(key) for key in _SERVED}, "--{}")
    ):
        values[key] = PARSERS[key](value, where)
    cache = str(flags.get("cache") or "")
    if isinstance(store, str):
        return Settings.of(
            "", working_folder(store, "driver", cache), place=store, cache=cache, **values
        )
    return Settings.of("", store, **values)


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
        elif rest.lower() in PARSERS and rest.lower() not in _ADDRESSED:
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
