"""An application from a TOML file.

"A developer writes the functions, then a configuration file that includes the workflow" (Muppet,
section 4). The file names the functions and the graph; it builds the same `App` as the decorators:

    [app]                 name, order, on_error, slate_warn, slate_limit
    [streams.NAME]        source = true | "json:DIR", key, ts, unit, time_format, zone, until,
                          ahead, jump, lateness, idle, pattern, starts, encoding, delimiter;
                          output = true, sink = "parquet:DIR" | "sqlite:FILE"; delay, after;
                          action = true | "webhook:URL" | "line:FILE" | "stderr"
    [maps.NAME]           function = "module:name", subscribes, publishes
    [updates.NAME]        function, subscribes, publishes, slate, ttl, on_timer; or an aggregate:
                          algebra = "count" | { name = "sum", of = "amount" } | "module:object",
                          subscribes, ttl
    [elements.NAME]       element = "count" | "module:Class", keys = { STREAM = "field" },
                          publishes, publish, every, every_events, clock, ttl, limit, overload,
                          overflow, keep, memory, and what the element is configured with
    [jobs.NAME]           map = "module:name", or without Python key = "field" | ["field", ...] |
                          { constant = "text" }, or split = "field", with value, where, numbers,
                          separator; nodes = [STREAM, ...] | { NODE = STREAM }, range, slide,
                          pane, by, sequence, begin, extent, combine = "sum" | { name = ... }
                          | "module:name", reduce, uncombine, latency, reducers, corrections,
                          fidelity = { area = 0.5, drawn = true } | { spatial = 0.5 } |
                          { temporal = 0.5 } | { error = 0.05, confidence = 0.95 },
                          shed, seed, bounds, most, confidence
    [jobs.NAME.logs]      panes come from agents: format, pattern, starts, encoding, ts, unit,
                          time_format, zone, until, ahead, jump, lateness, grace
    [feeds.NAME]          coherency, limit, k, t, keep, backfill, pushes, memory, ratio, policy,
                          latency, percentile, strategy
    [changes.UPDATE]      the changes of its slates as an output: name, sink
    [run]                 store, shards, tasks, ...: see `millstream.settings.settings`
    [spark]               settings of Spark itself, as in executor.memory = "2g"

The order of declaration is the order of the file. Modules are searched for beside the file first,
and paths in the file are relative to it, so that it means the same in every working directory. A
stream with a sink is an output. The error for an unknown word names its line and the nearest known
word.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from millstream import toml
from millstream.actions.address import parse_action_address
from millstream.app_file.app_parts import by_element, element, feeds, job
from millstream.app_file.app_sections import algebra_at, at_line_of, field_at, object_at
from millstream.errors import DefinitionError
from millstream.model.app import AppDefinition
from millstream.model.function import RESERVED_STREAMS
from millstream.model.slate import Table
from millstream.model.workflow import CHANGES
from millstream.modules import on_path
from millstream.nearest import did_you_mean
from millstream.settings.cluster_options import INSTALLED, spark_settings
from millstream.settings.setting_values import PARSERS, check_address, check_form, relative_to
from millstream.toml import Document, Section, shown

_SOURCE_TEXTS = (
    *("unit", "time_format", "zone", "until", "ahead", "jump", "lateness", "idle"),
    *("pattern", "starts", "encoding", "delimiter"),
)
_SOURCE_KEYS = ("key", "ts", *_SOURCE_TEXTS)
_STREAM_KEYS = ("source", *_SOURCE_KEYS, "output", "sink", "action", "delay", "after")
_MAP_KEYS = ("function", "subscribes", "publishes")
_ROOM_KEYS = ("limit", "overload", "overflow", "keep", "memory")
_UPDATE_KEYS = (*_MAP_KEYS, "slate", "ttl", "on_timer", *_ROOM_KEYS, "immediate", "priority")
_AGGREGATE_KEYS = ("algebra", "subscribes", "ttl")
_SLATES: dict[str, type] = {"dict": dict, "table": Table}
_TABLES = {
    "map": "maps",
    "update": "updates",
    "aggregate": "updates",
    "element": "elements",
    "job": "jobs",
    "feeds": "feeds",
    "source": "streams",
    "stream": "streams",
    "output": "streams",
    "action": "streams",
    "changes of": "changes",
}


def read_app(path: Path) -> tuple[AppDefinition, dict[str, Any]]:
    """Returns the application that a TOML file describes, and the settings in it."""
    document = toml.read(path)
    on_path(document.directory)
    document.section().only("app", "streams", *_BUILDERS, "changes", "run", "spark")
    for kind in ("streams", *_BUILDERS, "changes"):
        document.section(kind)
    head = document.section("app")
    head.only("name", "order", "on_error", "slate_warn", "slate_limit")
    sizes = {key: head.get(key, str, int) for key in ("slate_warn", "slate_limit")}
    with at_line_of(head):
        app = AppDefinition(
            head.need("name", str),
            order=head.get("order", str) or "arrival",
            on_error=head.get("on_error", str) or "dead-letter",
            **{key: size for key, size in sizes.items() if size is not None},
        )
    settings: dict[str, Any] = {"sources": {}, "sinks": {}}
    for section in document.sections("streams"):
        with at_line_of(section):
            _stream(app, section, settings)
    for section in document.sections(*_BUILDERS):
        with at_line_of(section):
            _BUILDERS[section.path[0]](app, section)
    for section in document.sections("changes"):
        with at_line_of(section):
            _changes(app, section, settings)
    settings.update(_run(document.section("run")))
    spark = document.section("spark")
    if spark.values:
        with at_line_of(spark):
            settings["spark"] = spark_settings(spark.values, "[spark]")
    app.settings.update(settings)
    _check_graph(app, document)
    for source in app.checked().sources:
        address = settings["sources"].get(source.name)
        if address is not None:
            with at_line_of(document.section("streams", source.name)):
                check_form(source, address)
    return app, settings


def _stream(app: AppDefinition, section: Section, settings: dict[str, Any]) -> None:
    section.only(*_STREAM_KEYS)
    name = section.name
    source, sink = section.get("source", bool, str), section.get("sink", str)
    if isinstance(source, str):
        settings["sources"][name] = _address(section, "source", source)
    if sink is not None:
        settings["sinks"][name] = _address(section, "sink", sink)
    if name in RESERVED_STREAMS and set(section.values) == {"sink"}:
        return  # Millstream's own output streams: nothing to declare
    if source:
        texts = {key: section.get(key, str) for key in _SOURCE_TEXTS if key in section.values}
        app.source(name, key=field_at(section, "key"), ts=field_at(section, "ts"), **texts)
    else:
        for key in _SOURCE_KEYS:
            if key in section.values:
                raise section.error(
                    key, f"{key!r} in {shown(section.path)} is for a source; add source = true"
                )
    output, times = section.get("output", bool), {}
    for key in ("delay", "after"):
        if key in section.values:
            times[key] = section.get(key, str)
    if sink is not None and output is False:
        raise section.error("sink", f"{shown(section.path)} has a sink, so it must be an output")
    if times or not section.values:
        app.stream(name, **times)
    if output or sink is not None:
        app.output(name)
    action = section.get("action", bool, str)
    if action:
        app.action(name)
    if isinstance(action, str):
        parse_action_address(action, section.where("action"))
        address = relative_to(action, section.document.directory)
        settings.setdefault("actions", {})[name] = address


def _changes(app: AppDefinition, section: Section, settings: dict[str, Any]) -> None:
    """Declares the output of `[changes.UPDATE]`: the changes of the update's slates."""
    section.only("name", "sink")
    name, sink = section.get("name", str), section.get("sink", str)
    app.changes(section.name, name=name)
    if sink is not None:
        output = name or f"{section.name}{CHANGES}"
        settings["sinks"][output] = _address(section, "sink", sink)


def _function(app: AppDefinition, section: Section) -> None:
    is_map = section.path[0] == "maps"
    if not is_map and "algebra" in section.values:
        _aggregate(app, section)
        return
    section.only(*(_MAP_KEYS if is_map else _UPDATE_KEYS))
    section.need("subscribes", str, list)
    function = object_at(section, "function", section.need("function", str))
    subscribes, publishes = section.names("subscribes"), section.names("publishes")
    if is_map:
        app.map(*subscribes, publishes=publishes, name=section.name)(function)
        return
    slate, timer = section.get("slate", str) or "dict", section.get("on_timer", str)
    priority = section.get("priority", str)
    if ":" not in slate and slate not in _SLATES:
        raise section.error(
            "slate",
            f"'slate' in {shown(section.path)} must be 'dict', 'table' or 'module:Class'; "
            f"got {slate!r}; {did_you_mean(slate, _SLATES)}",
        )
    app.update(
        *subscribes,
        publishes=publishes,
        slate=_SLATES[slate] if slate in _SLATES else object_at(section, "slate", slate),
        ttl=section.get("ttl", str),
        limit=section.get("limit", int),
        overload=section.get("overload", str) or "throttle",
        overflow=section.get("overflow", str),
        immediate=section.get("immediate", bool) or False,
        keep=section.get("keep", int),
        memory=section.get("memory", str, int),
        priority=None if priority is None else object_at(section, "priority", priority),
        on_timer=None if timer is None else object_at(section, "on_timer", timer),
        name=section.name,
    )(function)


def _aggregate(app: AppDefinition, section: Section) -> None:
    for key in _UPDATE_KEYS:
        if key in section.values and key not in _AGGREGATE_KEYS:
            raise section.error(
                key,
                f"{key!r} in {shown(section.path)} must be left out: an aggregate is its algebra, "
                f"and has only {', '.join(_AGGREGATE_KEYS)}",
            )
    section.only(*_AGGREGATE_KEYS)
    section.need("subscribes", str, list)
    app.aggregate(
        *section.names("subscribes"),
        algebra=algebra_at(section),
        name=section.name,
        ttl=section.get("ttl", str),
    )


_BUILDERS: dict[str, Callable[[AppDefinition, Section], None]] = {
    "maps": _function,
    "updates": _function,
    "elements": element,
    "jobs": job,
    "feeds": feeds,
}
"""The function that builds the parts of each kind of table."""


def _run(section: Section) -> dict[str, Any]:
    keys = [key for key in PARSERS if key not in ("sources", "sinks", "actions", "spark")]
    section.only(*keys)
    settings = {}
    for key, value in section.values.items():
        parsed = PARSERS[key](value, section.where(key))
        # Values stay unparsed: they are parsed again with those from the other places.
        is_path = isinstance(parsed, Path) or (key == "runtime" and parsed != INSTALLED)
        settings[key] = section.document.directory / parsed if is_path else value
    return settings


def _address(section: Section, key: str, text: str) -> str:
    check_address(text, section.where(key), sink=key == "sink", stream=section.name)
    return relative_to(text, section.document.directory)


def _check_graph(app: AppDefinition, document: Document) -> None:
    """Check the whole graph now, while the lines are known."""
    try:
        app.checked()
    except DefinitionError as error:
        message = by_element(str(error), document)
        raise document.error(_path_of(str(error), document), message) from None


def _path_of(message: str, document: Document) -> tuple[str, ...]:
    """Returns the table or key that an error of the model is about."""
    app = re.match(r"app .*?: (order|on_error) must", message)
    if app:
        return "app", app[1]
    named = re.match(r"(changes of|\w+) '([^']+)'", message)
    if named is None or named[1] not in _TABLES:
        return ("app",)
    part = named[2].split(".")[0]
    if part in document.section("jobs").values:
        return "jobs", part, "nodes"
    if part in document.section("feeds").values:
        return "feeds", part
    if part in document.section("elements").values:
        return ("elements", part, "keys" if " subscribes to " in message else "publishes")
    key = ("subscribes",) if " subscribes to " in message else ()
    return _TABLES[named[1]], named[2], *key
