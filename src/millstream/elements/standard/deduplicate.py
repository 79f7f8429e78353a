"""Deduplicate: passes on only the first of the events with the same id.

The id is the element's key or, with `of`, a field. Then events are compared within their key. About
once every `within`, a timer deletes the ids whose events were passed on at least `within` ago. So
memory is bounded by time: a repeat does not keep an id longer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from millstream.elements.element import Configured, Element
from millstream.elements.element_base import configuration
from millstream.elements.standard.aside import check_aside, passed_on
from millstream.elements.standard.bounds import bound, check_ttl
from millstream.errors import DefinitionError
from millstream.model.app import AppDefinition
from millstream.model.event import Emit, Event, Forget, SetTimer, Timer, emit, forget, timer
from millstream.model.path import is_path, key_text, picker


@dataclass
class Deduplicate(Element):
    """Passes on an event unless one with the same id, whose time is at most `within` away, was
    passed on.

    Events are passed on unchanged. Repeats are dropped and counted in `dropped`, or go to the
    stream `repeats_to`.
    """

    within: Configured[str]
    of: Configured[str | None] = None
    repeats_to: Configured[str | None] = None
    passed: dict[str, int] = field(default_factory=dict)
    """The ids that were passed on, with their times. Without `of` the only id is ''."""
    dropped: int = 0

    def __post_init__(self) -> None:
        self._within = bound("Deduplicate", "within", self.within)
        configuration(self)
        if self.of is not None and not is_path(self.of):
            raise DefinitionError(
                f"element Deduplicate: of must name a field or a dotted path; got {self.of!r}"
            )
        self._pick = None if self.of is None else picker(self.of, "element Deduplicate")

    def add_to(self, app: AppDefinition, **placement: Any) -> None:
        check_ttl("Deduplicate", "within", self._within, placement.get("ttl"))
        check_aside("Deduplicate", "repeats_to", self.repeats_to, placement)
        super().add_to(app, **placement)

    def process_event(self, event: Event) -> Iterator[Emit | SetTimer]:
        ts, name = event.ts, ""
        if self._pick is not None:
            name = key_text(self._pick(event.value), "element Deduplicate: of")
        before = self.passed.get(name)
        if before is not None and abs(ts - before) <= self._within:
            if self.repeats_to is None:
                self.dropped += 1
            else:
                yield emit(self.repeats_to, key=self.key)
            return
        if not self.passed:
            yield timer(at=ts + self._within)
        self.passed[name] = ts if before is None else max(ts, before)
        yield from passed_on(self, self.repeats_to)

    def on_timer(self, timer: Timer) -> Iterator[SetTimer | Forget]:
        over = timer.ts - self._within
        self.passed = {name: ts for name, ts in self.passed.items() if ts > over}
        yield self._next()

    def _next(self) -> SetTimer | Forget:
        """Sets the timer to the time at which all current ids have expired. So a key with many ids
        has about one timer every `within`."""
        if not self.passed:
            return forget()
        return timer(at=max(self.passed.values()) + self._within)
