"""Sessionise: groups a key's events that follow each other closely into sessions.

A session is emitted when it is over: the gap has passed since its last event, or it has lasted for
`most`. A timer does this, so no further event of the key is needed. Events do not move the timer.
When it fires too early, it is set again, about once every gap.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from millstream.elements.element import Configured, Element
from millstream.elements.element_base import configuration
from millstream.elements.standard.bounds import bound, check_ttl
from millstream.errors import DefinitionError
from millstream.model.app import AppDefinition
from millstream.model.event import Emit, Event, Forget, SetTimer, Timer, forget, timer
from millstream.model.path import is_path

_OWN = ("key", "from", "to", "events")


@dataclass
class Sessionise(Element):
    """Emits `{"key": ..., "from": ..., "to": ..., "events": ...}` for each session of a key.

    Events at most `gap` apart belong to one session, unless it would last longer than `most`.
    `from` and `to` are the times of its first and last event. For each field in `collect` the
    session has a list of the field's values in its events, the first `collect_most` of them.
    """

    gap: Configured[str]
    most: Configured[str | None] = None
    collect: Configured[str | list[str] | None] = None
    collect_most: Configured[int] = 100
    events: int = 0
    """The number of events in the open session; 0 if there is no open session."""
    since: int = 0
    until: int = 0
    collected: dict[str, list[Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._gap = bound("Sessionise", "gap", self.gap)
        self._most = None if self.most is None else bound("Sessionise", "most", self.most)
        configuration(self)
        self._collect = tuple((name, name.split(".")) for name in _fields(self.collect))
        if self.collect_most < 1:
            raise DefinitionError(
                "element Sessionise: collect_most must be a whole number, 1 or more; "
                f"got {self.collect_most!r}"
            )

    def add_to(self, app: AppDefinition, **placement: Any) -> None:
        check_ttl("Sessionise", "gap", self._gap, placement.get("ttl"))
        super().add_to(app, **placement)

    def process_event(self, event: Event) -> Iterator[Emit | SetTimer]:
        ts = event.ts
        if self.events and not self._takes(ts):
            # Only in arrival order: in event-time order the timer fires before such an event.
            if ts < self.since:
                yield from self._session(ts, ts, 1, self._with({}, event.value))
                return
            yield from self._session(self.since, self.until, self.events, self.collected)
            self.events = 0
        if not self.events:
            self.since = self.until = ts
            self.collected = {}
            yield timer(at=self._end())
        self.events += 1
        self.since, self.until = min(self.since, ts), max(self.until, ts)
        self.collected = self._with(self.collected, event.value)

    def on_timer(self, timer: Timer) -> Iterator[Emit | SetTimer | Forget]:
        if self._end() > timer.ts:
            yield self._wait()
            return
        yield from self._session(self.since, self.until, self.events, self.collected)
        yield forget()

    def _wait(self) -> SetTimer:
        return timer(at=self._end())

    def _takes(self, ts: int) -> bool:
        """True if an event of this time belongs to the open session."""
        since, until = min(self.since, ts), max(self.until, ts)
        close = ts - self.until <= self._gap and self.since - ts <= self._gap
        return close and (self._most is None or until - since <= self._most)

    def _end(self) -> int:
        """Returns the time at which the session is over if no further event comes."""
        end = self.until + self._gap
        return end if self._most is None else min(end, self.since + self._most)

    def _session(
        self, since: int, until: int, events: int, collected: dict[str, Any]
    ) -> list[Emit]:
        own = {"key": self.key, "from": since, "to": until, "events": events}
        return self.to_all({**collected, **own}, key=self.key)

    def _with(self, collected: dict[str, list[Any]], value: Any) -> dict[str, list[Any]]:
        """Adds an event's fields to the collected values. Missing fields add nothing."""
        for name, steps in self._collect:
            values = collected.setdefault(name, [])
            content = value
            for step in steps:
                content = content.get(step) if type(content) is dict else None
            if content is not None and len(values) < self.collect_most:
                values.append(content)
        return collected


def _fields(collect: str | list[str] | None) -> list[str]:
    names = [collect] if isinstance(collect, str) else collect or []
    if not all(map(is_path, names)):
        raise DefinitionError(
            "element Sessionise: collect must be a field, a dotted path or a list of them; "
            f"got {collect!r}"
        )
    if taken := [name for name in names if name in _OWN]:
        raise DefinitionError(
            f"element Sessionise: collect must name other fields than {', '.join(_OWN)}, which "
            f"every session has; got {', '.join(taken)}"
        )
    return names
