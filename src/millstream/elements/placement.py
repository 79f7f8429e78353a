"""Turns an element into functions of the model.

An element with a memory (fields, a schedule or timers) is an update whose slate is its fields. If
its streams are keyed by attributes, a map in front of it sets that key; maps cost no shuffle. An
element without a memory is a map. `output` is called from timers, so it is also called when no
event comes. Time-to-live, limits and room are those of the update.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from inspect import signature
from typing import Any, Literal, TypedDict, Unpack

from millstream.elements.element_base import ElementBase, configuration, shape_of, slate_of
from millstream.elements.element_functions import (
    Cloning,
    Passing,
    Processing,
    Ranking,
    Schedule,
    Timing,
)
from millstream.elements.event_keys import OWN, Attribute, Keying, Keys, attributes_of, keyed_stream
from millstream.errors import DefinitionError
from millstream.model.app import AppDefinition
from millstream.model.duration import Duration, microseconds
from millstream.model.function import Overload, check_arguments, check_name
from millstream.model.place import location
from millstream.model.size import Size
from millstream.nearest import did_you_mean


class UpdateOptions(TypedDict, total=False):
    """The options of `App.update` that an element can have."""

    ttl: Duration | None
    keep: int | None
    memory: Size | None
    limit: int | None
    overload: Overload
    overflow: str | None
    version: int
    migrations: Mapping[tuple[int, int], Callable[..., Any]] | None
    formerly: str | Iterable[str]


OF_MEMORY = ("ttl", "keep", "memory", "limit", "overload", "overflow")
"""Options that only an element with a memory can have."""


def place(
    app: AppDefinition,
    element: ElementBase,
    *,
    keys: Keys,
    name: str | None = None,
    publishes: str | Iterable[str] = (),
    publish: str | None = None,
    every: Duration | None = None,
    every_events: int | None = None,
    clock: Literal["event", "wall"] = "event",
    **options: Unpack[UpdateOptions],
) -> None:
    """Adds the functions of an element to an application.

    `keys` names the attribute that is the key, for each stream. `publishes` are the streams that it
    emits to. `publish` is an output for `self.publish(...)`. `every` and `every_events` set when
    `output` is called. The other options are those of `App.update`.
    """
    kind: Any = type(element)
    name = kind.__name__ if name is None else name
    check_name(name, "element")
    where = f"element {name!r}"
    if not isinstance(element, ElementBase):
        hint = f": add {element.__name__}()" if isinstance(element, type) else ""
        raise DefinitionError(f"{where} must be an Element; got {element!r}{hint}")
    if kind.process_event is ElementBase.process_event:
        raise DefinitionError(f"{where}: {kind.__name__} must have a method process_event(event)")
    shape = shape_of(kind)
    configuration(element)
    _check_methods(element, where)
    attributes = attributes_of(keys, where)
    schedule = _schedule(element, every, every_events, clock, where)
    _check_lives(schedule, options.get("ttl"), where)
    emits = streams_of(publishes, where)
    if publish is not None:
        _check_stream(publish, "publish", where)
        app.output(publish)
        emits = [*(stream for stream in emits if stream != publish), publish]
    cloning = Cloning(name, element, shape.slate, publish, tuple(emits))
    timed = schedule.every is not None or kind.on_timer is not ElementBase.on_timer
    if not (shape.slate or timed or schedule.events is not None):
        _refuse_memory(where, options)
        if not emits:
            raise DefinitionError(
                f"{where}: publishes must name a stream: the element has no memory, so what it "
                "emits is all that it does"
            )
        passing = Passing(cloning, name, tuple(attributes.items()))
        app.map(*attributes, publishes=emits, name=name)(passing)
        return
    streams = _keyed_streams(app, name, attributes, where)
    limited = options.get("keep") is not None or options.get("memory") is not None
    ranked = limited and kind.priority is not ElementBase.priority
    app.update(
        *(stream for stream, _ in streams),
        publishes=emits,
        slate=slate_of(kind, schedule.remembers),
        on_timer=Timing(cloning, schedule) if timed else None,
        name=name,
        priority=Ranking(cloning) if ranked else None,
        **options,
    )(Processing(cloning, schedule, streams))


def _keyed_streams(
    app: AppDefinition, name: str, attributes: Mapping[str, Attribute], where: str
) -> tuple[tuple[str, str], ...]:
    """Returns the streams that an element reads, each with the stream that its events come from.

    If an attribute is the key, a map in front of the element sets it.
    """
    if all(attribute == OWN for attribute in attributes.values()):
        return tuple((stream, stream) for stream in attributes)
    streams = tuple((keyed_stream(name, stream), stream) for stream in attributes)
    keyed = [stream for stream, _ in streams]
    check_own(app, where, *keyed)
    keying = Keying(name, tuple(attributes.items()))
    app.map(*attributes, publishes=keyed, name=f"{name}.keys")(keying)
    return streams


PLACEMENT = (
    *(name for name in signature(place).parameters if name not in ("app", "element", "options")),
    *UpdateOptions.__annotations__,
)
"""The options of `place`, besides the element's own configuration."""


def check_placement(element: ElementBase, given: Mapping[str, Any]) -> None:
    """Raises DefinitionError for an option that `place` does not have, or if `keys` is missing."""
    where = f"element {given.get('name') or type(element).__name__!r}"
    for option in given:
        if option in PLACEMENT:
            continue
        hint = did_you_mean(option, PLACEMENT)
        if option in shape_of(type(element)).configured:
            hint = f"it is configured: {type(element).__name__}({option}=...)"
        raise DefinitionError(f"{where}: unknown option {option!r} of add(); {hint}")
    if "keys" not in given:
        attributes_of(None, where)


def streams_of(publishes: object, where: str) -> list[str]:
    """Returns the streams that `publishes` names. Raises DefinitionError if one is not a stream's
    name."""
    if not isinstance(publishes, Iterable):
        raise DefinitionError(
            f"{where}: publishes must name a stream, or a list of them; got {publishes!r}"
        )
    streams = [publishes] if isinstance(publishes, str) else list(publishes)
    for stream in streams:
        _check_stream(stream, "publishes", where)
    return streams


def _check_stream(stream: object, option: str, where: str) -> None:
    """Raises DefinitionError, which names the option, if this is not the name of a stream."""
    try:
        check_name(stream, "output" if option == "publish" else "stream")
    except DefinitionError as error:
        raise DefinitionError(f"{where}: {option} must name a stream: {error}") from None


def check_own(app: AppDefinition, where: str, *streams: str) -> None:
    """Raises DefinitionError if a stream that an element creates for itself exists already."""
    for stream in streams:
        if app.gives(stream):
            raise DefinitionError(
                f"{where} makes the stream {stream!r}, which exists already; give the element "
                "another name"
            )


def _check_methods(element: ElementBase, where: str) -> None:
    """Raises DefinitionError if a method has the wrong arguments, rather than at each event."""
    takes: dict[str, tuple[str, ...]] = {"process_event": ("event",), "on_timer": ("timer",)}
    for method in ("process_event", "output", "on_timer", "priority"):
        function = getattr(type(element), method)
        if function is not getattr(ElementBase, method):
            label = f"{where}: {method}{location(function)}"
            check_arguments(getattr(element, method), takes.get(method, ()), label)


def _schedule(
    element: ElementBase, every: Duration | None, events: int | None, clock: Any, where: str
) -> Schedule:
    kind = type(element)
    period = None if every is None else microseconds(every, f"{where}: every")
    if period == 0:
        raise DefinitionError(f"{where}: every must be a duration over 0; got {every!r}")
    if period == 1:  # what it emits would fall into the next period, and make that due, for ever
        raise DefinitionError(f"{where}: every must be 2us or more; got {every!r}")
    if events is not None and (
        not isinstance(events, int) or isinstance(events, bool) or events < 1
    ):
        raise DefinitionError(
            f"{where}: every_events must be a whole number, 1 or more; got {events!r}"
        )
    if clock not in ("event", "wall"):
        raise DefinitionError(f"{where}: clock must be 'event' or 'wall'; got {clock!r}")
    if clock == "wall" and period is None:
        raise DefinitionError(
            f"{where}: clock must come with every, which it is the clock of; got 'wall'"
        )
    if (period or events) and kind.output is ElementBase.output:
        option = "every" if period else "every_events"
        raise DefinitionError(f"{where}: {option} must be left out{_no_output(kind, option)}")
    return Schedule(period, events, clock, element.most_idle)


def _no_output(kind: type[ElementBase], option: str) -> str:
    """Explains what is wrong: a standard element cannot get a method `output`, a user's own can."""
    package, _, module = kind.__module__.rpartition(".")
    if package == f"{__package__}.standard":
        return f": {module} emits on its own and takes no {option}"
    return f", or {kind.__name__} must have a method output(), which it calls"


def _check_lives(schedule: Schedule, ttl: Duration | None, where: str) -> None:
    """Raises DefinitionError if an element would expire before its output, and lose its results
    silently."""
    if ttl is None or schedule.every is None or schedule.clock != "event":
        return
    if microseconds(ttl, f"{where}: ttl") < schedule.every:
        raise DefinitionError(
            f"{where}: ttl must not be shorter than every, or an element would be gone before its "
            f"output; got {ttl!r}"
        )


def _refuse_memory(where: str, options: UpdateOptions) -> None:
    for option, value in options.items():
        is_default = value is None or (option, value) == ("overload", "throttle")
        if option in OF_MEMORY and not is_default:
            raise DefinitionError(
                f"{where}: {option} must be left out: the element has no fields, so it has no "
                "memory, and runs as a map"
            )
