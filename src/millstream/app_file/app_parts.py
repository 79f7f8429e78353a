"""Builds elements, jobs and feeds from the tables of an application's TOML file."""

from __future__ import annotations

import re
from inspect import signature
from typing import Any

from millstream.app_file.app_sections import algebra_at, at_line_of, field_at, object_at
from millstream.elements import STANDARD
from millstream.elements.element import Element
from millstream.elements.placement import PLACEMENT
from millstream.errors import DefinitionError
from millstream.feeds import Feeds
from millstream.model.app import AppDefinition
from millstream.nearest import did_you_mean
from millstream.toml import Document, Section, shown
from millstream.windows import FieldMap, Job, Logs
from millstream.windows.fidelity import FIDELITIES


def element(app: AppDefinition, section: Section) -> None:
    named = section.need("element", str)
    if ":" in named:
        kind = object_at(section, "element", named)
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
    for clash in sorted({*takes} & {*PLACEMENT}):
        raise section.error(
            "element",
            f"{shown(section.path)}: {kind.__name__} must be added in Python, or its field "
            f"{clash!r} renamed: in a TOML file that word says where the element is placed",
        )
    section.only("element", *(key for key in PLACEMENT if key != "name"), *takes)
    placement = {key: value for key, value in section.values.items() if key != "element"}
    configured = {key: placement.pop(key) for key in takes if key in placement}
    for key, parameter in signature(kind).parameters.items():
        if parameter.default is parameter.empty and key not in configured:
            raise section.error("element", f"{shown(section.path)} needs {key!r}, for a {named}")
    try:
        app.add(kind(**configured), name=section.name, **placement)
    except DefinitionError as error:
        of_class, message = f"element {kind.__name__}:", str(error)
        if message.startswith(of_class):
            message = f"element {section.name!r}:{message.removeprefix(of_class)}"
        raise DefinitionError(by_element(message, section.document)) from error.__cause__


def by_element(message: str, document: Document) -> str:
    """Rewrites an error about a function that an element made: it names the element instead, since
    that is the name that the user chose."""
    function = re.match(r"(?:map|update) '([^'.]+)[^']*'", message)
    if function is None or function[1] not in document.section("elements").values:
        return message
    return f"element {function[1]!r}{message[function.end() :]}"


def job(app: AppDefinition, section: Section) -> None:
    options = tuple(signature(Job).parameters)
    map_options = tuple(signature(FieldMap).parameters)
    section.only("nodes", "logs", *options, *map_options)
    section.need("nodes", list, dict)
    arguments = {key: section.values[key] for key in options if key in section.values}
    for key in ("map", "reduce", "uncombine"):
        if key in arguments:
            arguments[key] = object_at(section, key, section.need(key, str))
    combine = section.get("combine", str, dict)
    if isinstance(combine, str) and ":" in combine:
        arguments["combine"] = object_at(section, "combine", combine)
    elif combine is not None:
        arguments["combine"] = algebra_at(section, "combine")
    fields = {key: section.values[key] for key in map_options if key in section.values}
    if "map" not in arguments:
        if not fields.keys() & {"key", "split"}:
            raise section.error(
                "map",
                f"{shown(section.path)} needs 'map', a function as in 'module:name', or without "
                "Python 'key', the field that is the key, or 'split', the text whose words are",
            )
        arguments["map"] = FieldMap(**fields)
    elif fields:
        first = next(iter(fields))
        raise section.error(
            first,
            f"{first!r} in {shown(section.path)} must be left out: 'map' is a function, and yields "
            "keys and values itself; or leave out 'map'",
        )
    if "fidelity" in arguments:
        arguments["fidelity"] = _fidelity(section)
    if isinstance(arguments.get("most"), list):
        arguments["most"] = tuple(arguments["most"])
    placement = {"name": section.name, "nodes": section.values["nodes"]}
    if section.get("logs", dict) is not None:
        placement["logs"] = _logs(section)
    app.add(Job(**arguments), **placement)


def _fidelity(section: Section) -> Any:
    """Parses `{ area = 0.5 }`, `{ spatial = 0.5 }`, ...; further keys are options of the kind."""
    table = section.need("fidelity", dict)
    named = [kind for kind in table if kind in FIDELITIES]
    kind = FIDELITIES[named[0]] if len(named) == 1 else None
    options = () if kind is None else tuple(signature(kind).parameters)[1:]
    if kind is None or not table.keys() <= {*named, *options}:
        raise section.error(
            "fidelity",
            f"'fidelity' in {shown(section.path)} must have one of {', '.join(FIDELITIES)}, as in "
            f"{{ area = 0.5 }}, with area drawn, with error confidence; "
            f"got {', '.join(table) or 'none'}",
        )
    return kind(table[named[0]], **{key: table[key] for key in options if key in table})


def _logs(section: Section) -> Logs:
    logs = section.document.section(*section.path, "logs")
    options = tuple(signature(Logs).parameters)
    logs.only(*options)
    texts = {key: logs.get(key, str) for key in options if key != "ts" and key in logs.values}
    with at_line_of(logs):
        return Logs(**texts, ts=field_at(logs, "ts"))


def feeds(app: AppDefinition, section: Section) -> None:
    options = tuple(signature(Feeds).parameters)
    section.only(*options)
    app.add(Feeds(**section.values), name=section.name)
