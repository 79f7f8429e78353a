"""An element as functions: what a map or an update calls with an event and a slate.

For each call the prototype is cloned, and the clone takes the slate's fields; when the method has
ended, the fields go back into the slate. If it fails, the engine takes the slate back, as of any
update.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from inspect import Parameter, Signature
from typing import Any, Literal

from millstream.elements.element import Element
from millstream.elements.keying import Attribute, key_of
from millstream.model.event import Emit, Event, Forget, SetTimer, Timer, timer
from millstream.model.rules import effects

OUTPUT = ":output"
"""The name of the timer of `output`; users' own names do not meet it."""
SINCE, NEXT = "since_output", "next_output"
Effect = Emit | SetTimer | Forget


@dataclass(frozen=True, slots=True)
class Schedule:
    """When `output` is called: at the end of every `every` microseconds, every `events` events."""

    every: int | None = None
    events: int | None = None
    clock: Literal["event", "wall"] = "event"

    @property
    def remembers(self) -> tuple[tuple[str, type, Any], ...]:
        """The fields that it keeps in the slate."""
        counted = ((SINCE, int, 0),) if self.events is not None and self.events > 1 else ()
        timed = ((NEXT, int, 0),) if self.every is not None else ()
        return counted + timed

    def set_from(self, now: int) -> tuple[int, SetTimer]:
        """The next time of `output` after `now`, and its timer.

        Times of the event clock are the multiples of `every`; the timer is set for the last
        microsecond before, so that it comes after all events of the time that has ended and before
        those of the next.
        """
        assert self.every is not None
        if self.clock == "wall":
            return now + self.every, SetTimer(OUTPUT, "wall", None, self.every)
        end = (now // self.every + 1) * self.every
        return end, timer(at=end - 1, name=OUTPUT)


def _takes(*names: str) -> Signature:
    return Signature([Parameter(name, Parameter.POSITIONAL_ONLY) for name in names])


@dataclass(frozen=True)
class Cloning:
    """A prototype, what is configured in it, and which of its fields are the slate."""

    prototype: Element
    fields: tuple[str, ...]
    publish: str | None = None

    def clone(self, slate: Any, key: str, time: int) -> Element:
        """The element of a key, with its slate."""
        kind = type(self.prototype)
        element: Element = kind.__new__(kind)
        own, stored = element.__dict__, slate.__dict__
        own.update(self.prototype.__dict__)
        for name in self.fields:
            own[name] = stored[name]
        own["key"], own["time"], own["_publish_to"] = key, time, self.publish
        return element

    def keep(self, element: Element, slate: Any) -> None:
        """Put the element's fields back into its slate."""
        own, stored = element.__dict__, slate.__dict__
        for name in self.fields:
            stored[name] = own[name]


@dataclass(frozen=True)
class Processing:
    """The update function of an element: `process_event`, and `output` when it is time."""

    cloning: Cloning
    schedule: Schedule
    streams: tuple[tuple[str, str], ...]
    """The streams that it subscribes to, each with the stream that the element knows it as."""
    __signature__ = _takes("event", "slate")

    @property
    def __wrapped__(self) -> Callable[..., Any]:
        return type(self.cloning.prototype).process_event

    def __call__(self, event: Event, slate: Any) -> Iterator[Any]:
        schedule, stored = self.schedule, slate.__dict__
        for known, stream in self.streams:
            if event.stream == known:
                event = Event(stream, event.ts, event.key, event.value)
                break
        element = self.cloning.clone(slate, event.key, event.ts)
        given = element.process_event(event)
        if given is not None:
            yield from effects(given)
        if schedule.events is not None:
            since = stored.get(SINCE, 0) + 1
            if since == schedule.events:
                since = 0
                yield from effects(element.output())
            if schedule.events > 1:
                stored[SINCE] = since
        if schedule.every is not None and not stored[NEXT]:
            stored[NEXT], first = schedule.set_from(event.ts)
            yield first
        self.cloning.keep(element, slate)


@dataclass(frozen=True)
class Timing:
    """The timer function of an element: `output` at its times, and the element's own timers."""

    cloning: Cloning
    schedule: Schedule
    __signature__ = _takes("timer", "slate")

    @property
    def __wrapped__(self) -> Callable[..., Any]:
        return type(self.cloning.prototype).on_timer

    def __call__(self, timer: Timer, slate: Any) -> Iterator[Any]:
        if timer.name == OUTPUT:
            element = self.cloning.clone(slate, timer.key, slate.__dict__[NEXT])
            slate.__dict__[NEXT], following = self.schedule.set_from(slate.__dict__[NEXT])
            yield from effects(element.output())
            yield following
        else:
            element = self.cloning.clone(slate, timer.key, timer.ts)
            yield from effects(element.on_timer(timer))
        self.cloning.keep(element, slate)


@dataclass(frozen=True)
class Passing:
    """The map function of an element that has no memory: one clone takes each event."""

    cloning: Cloning
    name: str
    attributes: tuple[tuple[str, Attribute], ...]
    _keys: dict[str, Callable[[Event], str]] = field(init=False, compare=False, repr=False)
    __signature__ = _takes("event")

    def __post_init__(self) -> None:
        keys = {
            stream: key_of(attribute, f"element {self.name!r}, stream {stream!r}")
            for stream, attribute in self.attributes
        }
        object.__setattr__(self, "_keys", keys)

    @property
    def __wrapped__(self) -> Callable[..., Any]:
        return type(self.cloning.prototype).process_event

    def __call__(self, event: Event) -> Iterator[Any]:
        key = self._keys[event.stream](event)
        element = self.cloning.clone(self.cloning.prototype, key, event.ts)
        keyed = Event(event.stream, event.ts, key, event.value)
        for effect in effects(element.process_event(keyed)):
            if isinstance(effect, Emit) and not isinstance(effect.key, str):
                effect = effect._replace(key=key)
            yield effect


@dataclass(frozen=True)
class Ranking:
    """The priority of an element, from its key and its slate."""

    cloning: Cloning
    __signature__ = _takes("key", "slate")

    @property
    def __wrapped__(self) -> Callable[..., Any]:
        return type(self.cloning.prototype).priority

    def __call__(self, key: str, slate: Any) -> float:
        return self.cloning.clone(slate, key, 0).priority()
