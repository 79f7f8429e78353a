"""Sliding: aggregates over the latest slots of time (S4, section IV.B).

"Dividing the window into slots of 1 hour each and aggregating clicks and impressions for each slot.
Subsequently, on the hour, the aggregations from slots within the window were added up and pushed
out." So a key holds one partial for each slot, not its events: at most `slots` of them, in any
order of arrival. Slots are aligned to the clock: `[n * slot, (n + 1) * slot)` of event time.

`output` is called at the end of slots, whether events came or not. A window is emitted if it or the
previous one is not empty. So an empty window is emitted once, and then the key is forgotten. A
key's timers fire before its later events, in arrival order and in event-time order, so an event is
never in a window that ended before it.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, field
from typing import Any

from millstream.elements.element import Configured, Element
from millstream.elements.event_keys import attributes_of
from millstream.elements.standard.aggregates import aggregates_of, check_ratios, ratio
from millstream.elements.standard.bounds import bound, check_ttl
from millstream.elements.standard.statistics import merged
from millstream.errors import DefinitionError
from millstream.model.app import AppDefinition
from millstream.model.duration import microseconds
from millstream.model.event import Emit, Event, Forget, forget
from millstream.nearest import did_you_mean

_OWN = ("key", "from", "to", "late")
"""The emitted fields besides the aggregates."""
MOST_SLOTS = 10_000
"""The maximum number of slots of a window: a slate is read and written as a whole."""


@dataclass
class Sliding(Element):
    """Aggregates over the last `slots` slots of `slot` each, emitted at the end of slots.

    Emits `{"key", "from", "to", "late"}`, each of `aggregates` and each of `ratios`.
    """

    slot: Configured[str]
    slots: Configured[int]
    aggregates: Configured[dict[str, Any]] = field(default_factory=lambda: {"count": "count"})
    ratios: Configured[dict[str, list[str]]] = field(default_factory=dict)
    partials: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By the slot's start, the written form of each aggregate that has an event in the slot."""
    due: int | None = None
    """The end of the next window to emit."""
    late: int = 0
    """Events whose slot is in none of the windows still to come."""
    filled: bool = False
    """True if the previous window was not empty."""

    _every = 0

    def __post_init__(self) -> None:
        if type(self.slots) is not int or not 1 <= self.slots <= MOST_SLOTS:
            raise DefinitionError(
                f"element Sliding: slots must be a whole number from 1 to {MOST_SLOTS}; "
                f"got {self.slots!r}"
            )
        self._width = bound("Sliding", "slot", self.slot)
        self._window = self._width * self.slots
        self.most_idle = self.slots + 1  # until an empty window has been emitted
        self._aggregates = aggregates_of(self.aggregates, _OWN, "element Sliding")
        check_ratios(self.ratios, self._aggregates, _OWN, "element Sliding")

    def add_to(self, app: AppDefinition, **placement: Any) -> None:
        """Adds the element to an application. `every` is the slot if it is left out."""
        named = repr(placement.get("name") or type(self).__name__)
        where = f"element {named}"
        if placement.get("every") is None:
            placement["every"] = self.slot
        every = microseconds(placement["every"], f"{where}: every")
        if every % self._width or not 0 < every <= self._window:
            raise DefinitionError(
                f"{where}: every must be the slot, {self.slot}, or a multiple of it up to the "
                f"window, {self.slots} slots; got {placement['every']!r}"
            )
        if placement.get("every_events") is not None:
            raise DefinitionError(
                f"{where}: every_events must be left out: windows are emitted at the end of slots; "
                f"for more windows use shorter slots; got {placement['every_events']!r}"
            )
        if placement.get("clock", "event") != "event":
            raise DefinitionError(
                f"{where}: clock must be 'event', since slots are of event time; "
                f"got {placement['clock']!r}"
            )
        lives = "the window and every together"
        check_ttl(named, lives, self._window + every, placement.get("ttl"))
        streams = attributes_of(placement.get("keys"), where)
        for name, aggregate in self._aggregates.items():
            if aggregate.stream is not None and aggregate.stream not in streams:
                raise DefinitionError(
                    f"{where}: aggregates must be of streams that keys names; {name!r} is of "
                    f"{aggregate.stream!r}; {did_you_mean(aggregate.stream, streams)}"
                )
        placed = copy(self)
        placed._every = every
        super(Sliding, placed).add_to(app, **placement)

    def process_event(self, event: Event) -> None:
        start = event.ts - event.ts % self._width
        if self.due is None:
            self.due = event.ts - event.ts % self._every + self._every
        if start < self.due - self._window:
            self.late += 1
            return
        slot = self.partials.get(str(start), {})
        for name, aggregate in self._aggregates.items():
            if aggregate.takes(event):
                slot[name] = merged(aggregate.algebra, slot.get(name), event)
        if slot:
            self.partials[str(start)] = slot

    def output(self) -> Iterator[Emit | Forget]:
        end = self.time
        first, self.due = end - self._window, end + self._every
        inside = [slot for start, slot in self.partials.items() if first <= int(start) < end]
        if inside or self.filled:
            own = {"key": self.key, "from": first, "to": end, "late": self.late}
            yield from self.to_all({**own, **self._values(inside)})
        self.filled = bool(inside)
        oldest = self.due - self._window
        self.partials = {s: slot for s, slot in self.partials.items() if int(s) >= oldest}
        if not inside:
            yield forget()

    def _values(self, slots: list[dict[str, Any]]) -> dict[str, Any]:
        """Computes the aggregates and ratios over the slots."""
        values: dict[str, Any] = {}
        for name, aggregate in self._aggregates.items():
            algebra = aggregate.algebra
            total = algebra.zero()
            for slot in slots:
                if name in slot:
                    total = algebra.merge(total, algebra.read(slot[name]))
            values[name] = aggregate.shown(total)
        for name, (divided, divisor) in self.ratios.items():
            values[name] = ratio(values[divided], values[divisor])
        return values
