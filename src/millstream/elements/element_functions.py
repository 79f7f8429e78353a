"""The functions that a map or an update calls to run an element on an event and a slate.

For each call the prototype is cloned, and the clone gets the slate's fields. When the method has
ended, the fields are written back to the slate. If it fails, the engine restores the slate, as for
any update.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from operator import itemgetter
from typing import Any, Literal

from millstream.elements.element_base import IDLE, NEXT, SINCE, ElementBase
from millstream.elements.event_keys import Attribute, key_of, modules_of
from millstream.errors import FunctionError, InputError
from millstream.model.event import INHERITED, Emit, Event, SetTimer, Timer
from millstream.model.function import takes
from millstream.model.rules import effects

OUTPUT, AGAIN = ":output", ":output again"
"""The names of the timers of `output`, chosen so as not to clash with users' own."""
_new = tuple.__new__


@dataclass(frozen=True, slots=True)
class Schedule:
    """The times at which `output` is called: every `every` microseconds, every `events` events, or
    both.

    On the event clock these times are the multiples of `every`. The timer is set for the last
    microsecond before, so that it fires after all events of the period that has ended and before
    those of the next. If `output` fails, it sets no timer: the key's next event sets it again.
    After `most_idle` calls without an event in between, the calls stop until the next event.
    Otherwise a single event with a wrong time, such as 1970, would call `output` for every period
    since then.

    On the wall clock these times are counted from the key's first event. An event does not know the
    wall time, so it cannot set the timer again. Therefore a second timer does. It fires right after
    that of `output`, and calls nothing that could fail.
    """

    every: int | None = None
    events: int | None = None
    clock: Literal["event", "wall"] = "event"
    most_idle: int = 1_000

    @property
    def remembers(self) -> tuple[tuple[str, Any, Any], ...]:
        """The fields that the schedule keeps in the slate."""
        kept: list[tuple[str, Any, Any]] = []
        if self.events is not None and self.events > 1:
            kept.append((SINCE, int, 0))
        if self.every is not None:
            kept.append((NEXT, int | None, None))
            kept.append((IDLE, int, 0))
        return tuple(kept)

    def is_due(self, slate: Any, ts: int) -> bool:
        """True if an event must be counted, or requires a timer."""
        if self.events is not None:
            return True
        return self.every is not None and (getattr(slate, IDLE) > 0 or self._unset(slate, ts))

    def begin(self, slate: Any, ts: int) -> Iterator[SetTimer]:
        """Yields the timers to set at an event, if none is set."""
        setattr(slate, IDLE, 0)
        if self._unset(slate, ts):
            yield from self._set(slate, ts)

    def _unset(self, slate: Any, ts: int) -> bool:
        known = getattr(slate, NEXT)
        return known is None or (self.clock == "event" and known <= ts)

    def next(self, slate: Any, timer: Timer) -> Iterator[SetTimer]:
        """Yields the timers to set after one has fired."""
        idle = getattr(slate, IDLE) + 1
        if self.clock == "event" and idle > self.most_idle:
            setattr(slate, NEXT, None)
            return
        setattr(slate, IDLE, idle)
        yield from self._set(slate, timer.ts + 1)

    def _set(self, slate: Any, now: int) -> Iterator[SetTimer]:
        assert self.every is not None
        end = (now // self.every + 1) * self.every
        setattr(slate, NEXT, end)
        if self.clock == "event":
            yield SetTimer(OUTPUT, "event", end - 1, None)
        else:
            yield SetTimer(OUTPUT, "wall", None, self.every)
            yield SetTimer(AGAIN, "wall", None, self.every)


@dataclass(frozen=True)
class Cloning:
    """A prototype with its configuration, and the names of its fields that are the slate.

    `name` is the element's name in the application. Errors about events use it, since there may be
    several elements of one class.
    """

    name: str
    prototype: ElementBase
    fields: tuple[str, ...]
    publish: str | None = None
    publishes: tuple[str, ...] = ()
    _born_with: dict[str, Any] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        streams = {"_publish_to": self.publish, "_publishes": self.publishes}
        initial = {**self.prototype.__dict__, "key": "", "time": 0, **streams}
        object.__setattr__(self, "_born_with", initial)

    @property
    def modules(self) -> set[str]:
        """The modules that contain a clone's code."""
        return {kind.__module__ for kind in type(self.prototype).__mro__}

    @cached_property
    def _configured(self) -> tuple[itemgetter[Any], tuple[Any, ...]]:
        """A getter for all attributes of a clone that no event may change, and their values."""
        changing = {*self.fields, "key", "time"}
        others = itemgetter(*(name for name in self._born_with if name not in changing))
        return others, others(self._born_with)

    def clone(self, slate: Any, key: str, time: int) -> ElementBase:
        element: ElementBase = object.__new__(type(self.prototype))
        own = element.__dict__ = self._born_with.copy()
        for name in self.fields:
            own[name] = getattr(slate, name)
        own["key"], own["time"] = key, time
        return element

    def name_in(self, error: InputError) -> None:
        """Replaces the class in an error about an event by the element's name."""
        class_label, text = f"element {type(self.prototype).__name__}", str(error)
        if text.startswith((f"{class_label}:", f"{class_label},")):
            error.args = (f"element {self.name!r}{text.removeprefix(class_label)}",)

    def keep(self, element: ElementBase, slate: Any) -> None:
        """Writes the element's fields back to its slate. Raises FunctionError if it changed other
        attributes."""
        own = element.__dict__
        others, configured = self._configured
        if len(own) != len(self._born_with) or others(own) != configured:
            raise self._not_fields(own)
        for name in self.fields:
            setattr(slate, name, own[name])

    def _not_fields(self, own: dict[str, Any]) -> FunctionError:
        """Returns the error for an attribute that is not a field: it would be lost silently with
        the clone."""
        kind = type(self.prototype).__name__
        for name in self._born_with:
            if name not in own:
                return FunctionError(f"element {kind}: {name} must not be deleted: set it instead")
        others = ", ".join(name for name in own if name not in self._born_with)
        if not others:
            changed = (name for name in own if name not in (*self.fields, "key", "time"))
            names = ", ".join(name for name in changed if own[name] != self._born_with[name])
            return FunctionError(
                f"element {kind}: {names} must stay as it was configured, for all keys and events; "
                "a value that changes with events must be a field with a default, not marked "
                "Configured"
            )
        return FunctionError(
            f"element {kind}: only its fields are kept for a key's next event; got {others}, which "
            "it has set on itself: make it a field with a default, or a local variable"
        )


@dataclass(frozen=True)
class Processing:
    """The update function of an element: calls `process_event`, and `output` when it is due."""

    cloning: Cloning
    schedule: Schedule
    streams: tuple[tuple[str, str], ...]
    """The streams that it subscribes to, each with the stream's name for the element."""
    _renamed: dict[str, str] = field(init=False, compare=False, repr=False)
    _scheduled: bool = field(init=False, compare=False, repr=False)
    __signature__ = takes("event", "slate")

    def __post_init__(self) -> None:
        renamed = {known: stream for known, stream in self.streams if known != stream}
        object.__setattr__(self, "_renamed", renamed)
        scheduled = self.schedule.every is not None or self.schedule.events is not None
        object.__setattr__(self, "_scheduled", scheduled)

    @property
    def __wrapped__(self) -> Callable[..., Any]:
        return type(self.cloning.prototype).process_event

    @property
    def __modules__(self) -> set[str]:
        return self.cloning.modules

    def __call__(self, event: Event, slate: Any) -> Iterator[Any] | None:
        # Not a generator: most events only change the slate, and a generator would cost as much.
        if self._renamed:
            stream, ts, key, value = event
            event = _new(Event, (self._renamed[stream], ts, key, value))
        element = self.cloning.clone(slate, event.key, event.ts)
        try:
            result = element.process_event(event)
        except InputError as error:
            self.cloning.name_in(error)
            raise
        if result is None and not (self._scheduled and self.schedule.is_due(slate, event.ts)):
            self.cloning.keep(element, slate)
            return None
        return self._effects(element, result, event.ts, slate)

    def _effects(self, element: ElementBase, result: Any, ts: int, slate: Any) -> Iterator[Any]:
        schedule = self.schedule
        if result is not None:
            try:
                yield from effects(result)
            except InputError as error:
                self.cloning.name_in(error)
                raise
        if schedule.events is not None:
            since = getattr(slate, SINCE, 0) + 1
            if since >= schedule.events:  # may be greater: every_events may have been lowered
                since = 0
                yield from effects(element.output())
            if schedule.events > 1:
                setattr(slate, SINCE, since)
        if schedule.every is not None:
            yield from schedule.begin(slate, ts)
        self.cloning.keep(element, slate)


@dataclass(frozen=True)
class Timing:
    """The timer function of an element: calls `output` when it is due, and handles the element's
    own timers."""

    cloning: Cloning
    schedule: Schedule
    __signature__ = takes("timer", "slate")

    @property
    def __wrapped__(self) -> Callable[..., Any]:
        kind = type(self.cloning.prototype)
        return kind.output if kind.on_timer is ElementBase.on_timer else kind.on_timer

    @property
    def __modules__(self) -> set[str]:
        return self.cloning.modules

    def __call__(self, timer: Timer, slate: Any) -> Iterator[Any]:
        if timer.name in (OUTPUT, AGAIN) and self.schedule.every is None:
            return  # set before the application changed
        if timer.name == AGAIN:
            yield from self.schedule.next(slate, timer)
            return
        if timer.name != OUTPUT:
            element = self.cloning.clone(slate, timer.key, timer.ts)
            yield from effects(element.on_timer(timer))
        else:
            time = timer.ts if timer.clock == "wall" else timer.ts + 1
            element = self.cloning.clone(slate, timer.key, time)
            yield from effects(element.output())
            if timer.clock == "event":
                yield from self.schedule.next(slate, timer)
        self.cloning.keep(element, slate)


@dataclass(frozen=True)
class Passing:
    """The map function of an element without memory: each event gets a new clone."""

    cloning: Cloning
    name: str
    attributes: tuple[tuple[str, Attribute], ...]
    _keys: dict[str, Callable[[Event], str]] = field(init=False, compare=False, repr=False)
    __signature__ = takes("event")

    def __post_init__(self) -> None:
        keys = {
            stream: key_of(attribute, f"element {self.name!r}, stream {stream!r}")
            for stream, attribute in self.attributes
        }
        object.__setattr__(self, "_keys", keys)

    @property
    def __wrapped__(self) -> Callable[..., Any]:
        return type(self.cloning.prototype).process_event

    @property
    def __modules__(self) -> set[str]:
        return self.cloning.modules | modules_of(self.attributes)

    def __call__(self, event: Event) -> Iterator[Any]:
        stream, ts, _, value = event
        key = self._keys[stream](event)
        element = self.cloning.clone(None, key, ts)
        try:
            for effect in effects(element.process_event(_new(Event, (stream, ts, key, value)))):
                if type(effect) is Emit and effect.key is INHERITED:
                    effect = effect._replace(key=key)
                yield effect
        except InputError as error:
            self.cloning.name_in(error)
            raise
        self.cloning.keep(element, None)


@dataclass(frozen=True)
class Ranking:
    """The priority of an element, from its key and its slate."""

    cloning: Cloning
    __signature__ = takes("key", "slate")

    @property
    def __wrapped__(self) -> Callable[..., Any]:
        return type(self.cloning.prototype).priority

    def __call__(self, key: str, slate: Any) -> float:
        return self.cloning.clone(slate, key, 0).priority()
