"""Count: counts the events of each key."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from millstream.elements.element import Element
from millstream.model.event import Emit, Event


@dataclass
class Count(Element):
    """Counts a key's events. Emits `{"key": ..., "count": ...}`."""

    count: int = 0

    def process_event(self, event: Event) -> None:
        self.count += 1

    def output(self) -> Iterator[Emit]:
        yield from self.to_all({"key": self.key, "count": self.count})
