"""Filter: passes on the events that match conditions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from millstream.elements.element import Configured, Element
from millstream.elements.element_base import configuration
from millstream.model.conditions import conditions
from millstream.model.event import Emit, Event


@dataclass
class Filter(Element):
    """Passes on, unchanged, the events that match all of `where`; with `drop`, the others.

    The module `conditions` says what `where` may contain.
    """

    where: Configured[dict[str, Any]]
    drop: Configured[bool] = False

    def __post_init__(self) -> None:
        configuration(self)
        self._conditions = conditions(self.where, "element Filter: where")

    def process_event(self, event: Event) -> Iterator[Emit]:
        if self._conditions.hold(event.value) != self.drop:
            yield from self.to_all()
