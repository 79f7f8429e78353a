"""An application from a TOML file.

"A developer writes the functions, then a configuration file that includes the workflow" (Muppet,
section 4). The file names the functions and the graph; it builds the same `App` as the decorators:

    [app]                 name, order, on_error, slate_warn, slate_limit
    [streams.NAME]        source = true | "json:DIR", key, ts, unit, lateness, idle;
                          output = true, sink = "parquet:DIR" | "sqlite:FILE"; delay;
                          action = true | "webhook:URL" | "line:FILE" | "stderr"
    [maps.NAME]           function = "module:name", subscribes, publishes
    [updates.NAME]        function, subscribes, publishes, slate, ttl, on_timer; or an aggregate:
                          algebra = "count" | { name = "sum", of = "amount" } | "module:object",
                          subscribes, ttl
    [elements.NAME]       element = "count" | "module:Class", keys = { STREAM = "field" },
                          publishes, publish, every, every_events, clock, ttl, limit, overload,
                          overflow, keep, memory, and what the element is configured with
    [jobs.NAME]           map = "module:name", nodes = [STREAM, ...] | { NODE = STREAM }, range,
                          slide, pane, by, sequence, begin, extent, combine = "sum" | { name = ... }
                          | "module:name", reduce, uncombine, latency, reducers, corrections,
                          fidelity = { area = 0.5, drawn = true } | { spatial = 0.5 } |
                          { temporal = 0.5 } | { error = 0.05, confidence = 0.95 },
                          shed, seed, bounds, most, confidence
    [jobs.NAME.logs]      panes come from agents: format, pattern, ts, unit, time_format, grace
    [run]                 store, shards, tasks, ...: see `millstream.settings`

The order of declaration is the order of the file. Modules are looked for beside the file first,
and paths in the file are relative to it, so that it means the same wherever one stands. A stream
with a sink is an output. A wrong word is refused with its line and the nearest right one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from inspect import signature
from pathlib import Path
from typing import Any

from millstream import toml
from millstream.actions.address import parse_action_address
from millstream.algebra import BUILT_IN
from millstream.elements import STANDARD
from millstream.elements.aggregates import algebra_of
from millstream.elements.element import Element
from millstream.elements.placing import PLACEMENT
from millstream.errors import DefinitionError
from millstream.model.app import App
from millstream.model.function import RESERVED_STREAMS
from millstream.model.slate import Table
from millstream.modules import import_object, on_path
from millstream.nearest import did_you_mean
from millstream.setting_values import PARSERS, PATHS, check_address, relative_to
from millstream.toml import Document, Section, shown
from millstream.windows import Area, Error, Job, Logs, Spatial, Temporal

_SOURCE_KEYS = ("key", "ts", "unit", "lateness", "idle")
_STREAM_KEYS = ("source", *_SOURCE_KEYS, "output", "sink", "action", "delay")
_MAP_KEYS = ("function", "subscribes", "publishes")
_ROOM_KEYS = ("limit", "overload", "overflow", "keep", "memory")
_UPDATE_KEYS = (*_MAP_KEYS, "slate", "ttl", "on_timer", *_ROOM_KEYS, "priority")
_AGGREGATE_KEYS = ("algebra", "subscribes", "ttl")
_SLATES: dict[str, type] = {"dict": dict, "table": Table}
_TABLES = {
    "map": "maps",
    "update": "updates",
    "aggregate": "updates",
    "element": "elements",
    "job": "jobs",
    "source": "streams",
    "stream": "streams",
    "output": "streams",
    "action": "streams",
}


def read_app(path: Path) -> tuple[App, dict[str, Any]]:
    """The application that a TOML file describes, and the settings in it."""
    document = toml.read(path)
    on_path(document.directory)
    document.section().only("app", "streams", *_BUILDERS, "run")
    for kind in ("streams", *_BUILDERS):
        document.section(kind)
    head = document.section("app")
    head.only("name", "order", "on_error", "slate_warn", "slate_limit")
    sizes = {key: head.get(key, str, int) for key in ("slate_warn", "slate_limit")}
    with _at_line_of(head):
        app = App(
            head.need("name", str),
            order=head.get("order", str) or "arrival",
            on_error=head.get("on_error", str) or "dead-letter",
            **{key: size for key, size in sizes.items() if size is not None},
        )
    given: dict[str, Any] = {"sources": {}, "sinks": {}}
    for section in document.sections("streams"):
        with _at_line_of(section):
            _stream(app, section, given)
    for section in document.sections(*_BUILDERS):
        with _at_line_of(section):
            _BUILDERS[section.path[0]](app, section)
    given.update(_run(document.section("run")))
    app.settings.update(given)
    _check_graph(app, document)
    return app, given


def _stream(app: App, section: Section, given: dict[str, Any]) -> None:
    section.only(*_STREAM_KEYS)
    name = section.name
    source, sink = section.get("source", bool, str), section.get("sink", str)
    if isinstance(source, str):
        given["sources"][name] = _address(section, "source", source)
    if sink is not None:
        given["sinks"][name] = _address(section, "sink", sink)
    if name in RESERVED_STREAMS and set(section.values) == {"sink"}:
        return  # Millstream's own output streams: nothing to declare
    if source:
        durations = {key: section.get(key, str) for key in ("lateness", "idle")}
        app.source(
            name,
            key=_field(section, "key"),
            ts=_field(section, "ts"),
            unit=section.get("unit", str),
            **{key: value for key, value in durations.items() if value is not None},
        )
    else:
        for key in _SOURCE_KEYS:
            if key in section.values:
                raise section.error(
                    key, f"{key!r} in {shown(section.path)} is for a source; add source = true"
                )
    output, delay = section.get("output", bool), section.get("delay", str)
    if sink is not None and output is False:
        raise section.error("sink", f"{shown(section.path)} has a sink, so it must be an output")
    if delay is not None or not section.values:
        app.stream(name, **({} if delay is None else {"delay": delay}))
    if output or sink is not None:
        app.output(name)
    action = section.get("action", bool, str)
    if action:
        app.action(name)
    if isinstance(action, str):
        parse_action_address(action, section.where("action"))
        there = relative_to(action, section.document.directory)
        given.setdefault("actions", {})[name] = there


def _function(app: App, section: Section) -> None:
    is_map = section.path[0] == "maps"
    if not is_map and "algebra" in section.values:
        _aggregate(app, section)
        return
    section.only(*(_MAP_KEYS if is_map else _UPDATE_KEYS))
    section.need("subscribes", str, list)
    function = _object(section, "function", section.need("function", str))
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
        slate=_SLATES[slate] if slate in _SLATES else _object(section, "slate", slate),
        ttl=section.get("ttl", str),
        limit=section.get("limit", int),
        overload=section.get("overload", str) or "throttle",
        overflow=section.get("overflow", str),
        keep=section.get("keep", int),
        memory=section.get("memory", str, int),
        priority=None if priority is None else _object(section, "priority", priority),
        on_timer=None if timer is None else _object(section, "on_timer", timer),
        name=section.name,
    )(function)


def _element(app: App, section: Section) -> None:
    named = section.need("element", str)
    if ":" in named:
        kind = _object(section, "element", named)
    elif named in STANDARD:
        kind = STANDARD[named]
    else:
        raise section.error(
            "element",
            f"'element' in {shown(section.path)} must be one of {', '.join(STANDARD)}, or "
            f"'module:Class'; got {named!r}; {did_you_mean(named, STANDARD)}",
        )
    if not (isinstance(kind, type) and issubclass(kind, Element)):
        raise section.error(
            "element",
            f"'element' in {shown(section.path)} must name a class of elements; got {kind!r}",
        )
    section.need("keys", str, list, dict)
    takes = list(signature(kind).parameters)
    for both in sorted({*takes} & {*PLACEMENT}):
        raise section.error(
            "element",
            f"{shown(section.path)}: {kind.__name__} must be added in Python, or call its field "
            f"{both!r} otherwise: here that word is where the element is told its place",
        )
    section.only("element", *(one for one in PLACEMENT if one != "name"), *takes)
    given = {key: value for key, value in section.values.items() if key != "element"}
    configured = {key: given.pop(key) for key in takes if key in given}
    for key, parameter in signature(kind).parameters.items():
        if parameter.default is parameter.empty and key not in configured:
            raise section.error("element", f"{shown(section.path)} needs {key!r}, for a {named}")
    try:
        app.add(kind(**configured), name=section.name, **given)
    except DefinitionError as error:
        of_class, told = f"element {kind.__name__}:", str(error)
        if told.startswith(of_class):
            told = f"element {section.name!r}:{told.removeprefix(of_class)}"
        raise DefinitionError(_by_element(told, section.document)) from error.__cause__


def _job(app: App, section: Section) -> None:
    options = tuple(signature(Job).parameters)
    section.only("nodes", "logs", *options)
    section.need("nodes", list, dict)
    section.need("map", str)
    given = {key: section.values[key] for key in options if key in section.values}
    for key in ("map", "reduce", "uncombine"):
        if key in given:
            given[key] = _object(section, key, section.need(key, str))
    combine = section.get("combine", str, dict)
    if isinstance(combine, str) and ":" in combine:
        given["combine"] = _object(section, "combine", combine)
    elif combine is not None:
        given["combine"] = _algebra(section, "combine")
    if "fidelity" in given:
        given["fidelity"] = _fidelity(section)
    if isinstance(given.get("most"), list):
        given["most"] = tuple(given["most"])
    placement = {"name": section.name, "nodes": section.values["nodes"]}
    if section.get("logs", dict) is not None:
        placement["logs"] = _logs(section)
    app.add(Job(**given), **placement)


def _fidelity(section: Section) -> Any:
    """`{ area = 0.5 }`, `{ spatial = 0.5 }`, ...; the other keys are the kind's own."""
    given = section.need("fidelity", dict)
    kinds = {kind.__name__.lower(): kind for kind in (Area, Spatial, Temporal, Error)}
    named = [kind for kind in given if kind in kinds]
    kind = kinds[named[0]] if len(named) == 1 else None
    own = () if kind is None else tuple(signature(kind).parameters)[1:]
    if kind is None or not given.keys() <= {*named, *own}:
        raise section.error(
            "fidelity",
            f"'fidelity' in {shown(section.path)} must have one of {', '.join(kinds)}, as in "
            f"{{ area = 0.5 }}, with area drawn, with error confidence; "
            f"got {', '.join(given) or 'none'}",
        )
    return kind(given[named[0]], **{key: given[key] for key in own if key in given})


def _logs(section: Section) -> Logs:
    logs = section.document.section(*section.path, "logs")
    options = tuple(signature(Logs).parameters)
    logs.only(*options)
    texts = {key: logs.get(key, str) for key in options if key != "ts" and key in logs.values}
    with _at_line_of(logs):
        return Logs(**texts, ts=_field(logs, "ts"))


def _aggregate(app: App, section: Section) -> None:
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
        algebra=_algebra(section),
        name=section.name,
        ttl=section.get("ttl", str),
    )


def _algebra(section: Section, key: str = "algebra") -> Any:
    """A name of the library, a table with `name` and its arguments, or `module:object`."""
    given = section.get(key, str, dict)
    options = dict(given) if isinstance(given, dict) else {"name": given}
    name = options.pop("name", None)
    if isinstance(name, str) and ":" in name and not options:
        found = _object(section, key, name)
        return found() if callable(found) else found
    if not isinstance(name, str) or name not in BUILT_IN:
        raise section.error(
            key,
            f"{key!r} in {shown(section.path)} must name one of {', '.join(BUILT_IN)}, or be "
            f"'module:object'; got {name!r}"
            + (f"; {did_you_mean(name, BUILT_IN)}" if isinstance(name, str) else ""),
        )
    return algebra_of(name, options, f"{section.where(key)} must have")


_BUILDERS: dict[str, Callable[[App, Section], None]] = {
    "maps": _function,
    "updates": _function,
    "elements": _element,
    "jobs": _job,
}
"""What makes functions of each kind of table."""


def _run(section: Section) -> dict[str, Any]:
    keys = [key for key in PARSERS if key not in ("sources", "sinks", "actions")]
    section.only(*keys)
    given = {}
    for key, value in section.values.items():
        parsed = PARSERS[key](value, section.where(key))
        # As it stands in the file, since it is parsed again with what is given elsewhere.
        given[key] = section.document.directory / parsed if key in PATHS else value
    return given


def _address(section: Section, key: str, text: str) -> str:
    check_address(text, section.where(key), sink=key == "sink", stream=section.name)
    return relative_to(text, section.document.directory)


def _field(section: Section, key: str) -> Any:
    """A field or dotted path, or `{ function = "module:name" }` of the record."""
    value = section.get(key, str, dict)
    if not isinstance(value, dict):
        return value
    inner = section.document.section(*section.path, key)
    inner.only("function")
    return _object(inner, "function", inner.need("function", str))


def _object(section: Section, key: str, reference: str) -> Any:
    try:
        return import_object(reference, section.document.directory)
    except DefinitionError as error:
        if error.__cause__ is not None:
            raise  # the user's module failed: its own line is the place to look
        raise section.error(key, f"{key!r} in {shown(section.path)}: {error}") from None


@contextmanager
def _at_line_of(section: Section) -> Iterator[None]:
    """Give an error of the model the line of the key it is about, or of its table."""
    try:
        yield
    except DefinitionError as error:
        if str(error).startswith(f"{section.document.name}:") or error.__cause__ is not None:
            raise  # it has its line
        about = re.search(r": (\w+) must ", str(error))
        path = section.path if about is None else (*section.path, about[1])
        message = str(error).replace(" or a timedelta", "")  # TOML has none
        raise section.document.error(path, message) from None


def _by_element(message: str, document: Document) -> str:
    """An error of a function that an element has made, as one of the element, which the user
    named."""
    made = re.match(r"(?:map|update) '([^'.]+)[^']*'", message)
    if made is None or made[1] not in document.section("elements").values:
        return message
    return f"element {made[1]!r}{message[made.end() :]}"


def _check_graph(app: App, document: Document) -> None:
    """Check the whole graph now, while the lines are known."""
    try:
        app.checked()
    except DefinitionError as error:
        told = _by_element(str(error), document)
        raise document.error(_path_of(str(error), document), told) from None


def _path_of(message: str, document: Document) -> tuple[str, ...]:
    """The table or key that an error of the model is about."""
    app = re.match(r"app .*?: (order|on_error) must", message)
    if app:
        return "app", app[1]
    named = re.match(r"(\w+) '([^']+)'", message)
    if named is None or named[1] not in _TABLES:
        return ("app",)
    made_by = named[2].split(".")[0]
    if made_by in document.section("jobs").values:
        return "jobs", made_by, "nodes"
    if made_by in document.section("elements").values:
        return ("elements", made_by, "keys" if " subscribes to " in message else "publishes")
    key = ("subscribes",) if " subscribes to " in message else ()
    return _TABLES[named[1]], named[2], *key
