"""Rate limit: passes on a limited number of events of a key in each slot of time.

Slots are fixed, as the periods of `every` are: [n * per, (n + 1) * per) of event time, not of the
time of processing. The slate has a few numbers and no timer, so it is as cheap as a count. The
price is that up to twice `most` events can pass around the boundary of two slots.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from millstream.elements.element import Configured, Element
from millstream.elements.element_base import configuration
from millstream.elements.standard.aside import check_aside, passed_on
from millstream.elements.standard.bounds import bound, check_ttl
from millstream.errors import DefinitionError
from millstream.model.app import AppDefinition
from millstream.model.event import Emit, Event, emit


@dataclass
class RateLimit(Element):
    """Passes on the first `most` events of a key in each slot of `per`, unchanged.

    Further events are dropped and counted in `dropped`, or go to the stream `overflow_to`.
    """

    most: Configured[int]
    per: Configured[str]
    overflow_to: Configured[str | None] = None
    slot: int | None = None
    """The number of the latest slot with an event."""
    passed: int = 0
    """The number of events of that slot that were passed on."""
    dropped: int = 0

    def __post_init__(self) -> None:
        self._per = bound("RateLimit", "per", self.per)
        configuration(self)
        if self.most < 1:
            raise DefinitionError(
                f"element RateLimit: most must be a whole number, 1 or more; got {self.most!r}"
            )

    def add_to(self, app: AppDefinition, **placement: Any) -> None:
        check_ttl("RateLimit", "per", self._per, placement.get("ttl"))
        check_aside("RateLimit", "overflow_to", self.overflow_to, placement)
        super().add_to(app, **placement)

    def process_event(self, event: Event) -> Iterator[Emit]:
        slot = event.ts // self._per
        if self.slot is None or slot > self.slot:
            self.slot, self.passed = slot, 0
        if self.passed < self.most:
            self.passed += 1
            yield from passed_on(self, self.overflow_to)
        elif self.overflow_to is not None:
            yield emit(self.overflow_to, key=self.key)
        else:
            self.dropped += 1
