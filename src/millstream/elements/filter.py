"""Filter: the events that conditions hold for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from millstream.elements.element import Configured, Element, configuration
from millstream.model.conditions import conditions
from millstream.model.event import Emit, Event


@dataclass
class Filter(Element):
    """Passes on, as they are, the events for which all of `where` holds; with `drop`, the others.

    What can stand in `where` is said in `conditions`.
    """

    where: Configured[dict[str, Any]]
    drop: Configured[bool] = False

    def __post_init__(self) -> None:
        configuration(self)
        self._conditions = conditions(self.where, "element Filter: where")

    def process_event(self, event: Event) -> Iterator[Emit]:
        if self._conditions.hold(event.value) != self.drop:
            yield from self.to_all()
