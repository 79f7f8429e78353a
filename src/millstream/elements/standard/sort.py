"""Sort: keeps the best items of a key, by a value in the events (S4, Figure 1: the SortPE).

It keeps the best `size` + `spare` items, each with the value of its latest event (of several in the
same microsecond, the greatest). It also keeps `left_out`, the best value among the items that are
not kept. It guarantees:

- The list has the best of the items that are kept, with their latest values.
- While values only rise, the list is exact. An item that is not kept was below `size` others at its
  last event. Those have not fallen since, so it is still below them.
- If values can fall, a kept item may fall below one that is not kept, whose value is unknown until
  its next event. `exact` is true as long as no item that was left out was ever as good as the last
  item of the list. The list is then exact. `spare` is the number of items that can fall before
  that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from millstream.elements.element import Configured, Element
from millstream.elements.element_base import configuration
from millstream.elements.event_keys import OWN
from millstream.errors import DefinitionError, InputError
from millstream.model.app import AppDefinition
from millstream.model.duration import Duration, microseconds
from millstream.model.event import Emit, Event, SetTimer, Timer, timer
from millstream.model.path import is_path, key_text, picker

EXPIRY = "expiry"
Entry = list[Any]
"""[item, value]"""


def rank(item: str, value: float) -> tuple[float, str]:
    """Returns the sort key of a list: the greatest value first, equal values by item."""
    return -value, item


def item_reader(
    item_path: str, value_path: str, where: str
) -> Callable[[Event], tuple[str, float]]:
    """Returns a function that reads the item and the value of an event. It raises InputError if one
    is missing."""
    pick_item = picker(item_path, where)
    pick_value = picker(value_path, where)

    def read(event: Event) -> tuple[str, float]:
        item = (
            event.key
            if item_path == OWN
            else key_text(pick_item(event.value), f"{where}: {item_path!r}")
        )
        value = pick_value(event.value)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise InputError(
                f"{where}: field {value_path!r} must be a number; "
                f"got {type(value).__name__} {value!r}"
            )
        return item, value

    return read


@dataclass
class Sort(Element):
    """Keeps the best items of its key.

    Emits `{"key", "top": [[item, value], ...], "exact", "left_out", "sent"}` when the list has
    changed and output is due: by `every`, by `every_events`, or without both at each event. An item
    is not in the list if no event of it came for `item_ttl`, or if its value is not above `above`.
    """

    size: Configured[int] = 10
    by: Configured[str] = "count"
    of: Configured[str] = "key"
    above: Configured[float | None] = None
    spare: Configured[int] = 0
    item_ttl: Configured[str | None] = None
    items: dict[str, list[Any]] = field(default_factory=dict)
    """[value, ts] by item."""
    left_out: list[Any] = field(default_factory=list)
    """[value, item, ts]: the value and the item of the best that is not kept, and the latest ts of
    any that is not."""
    told: list[Any] = field(default_factory=list)
    """[top, left_out] as last sent."""
    sent: int = 0
    """The number of lists sent. It tells which of two lists of the same microsecond is newer."""
    next_expiry: int = 0

    def __post_init__(self) -> None:
        configuration(self)
        named = f"element {type(self).__name__}"
        for name, least in (("size", 1), ("spare", 0)):
            if getattr(self, name) < least:
                raise DefinitionError(
                    f"{named}: {name} must be {least} or more; got {getattr(self, name)!r}"
                )
        for name in ("by", "of"):
            if not is_path(getattr(self, name)):
                raise DefinitionError(
                    f"{named}: {name} must name a field or a dotted path; "
                    f"got {getattr(self, name)!r}"
                )
        self._ttl = 0
        if self.item_ttl is not None:
            self._ttl = microseconds(self.item_ttl, f"{named}: item_ttl")
            if not self._ttl:
                raise DefinitionError(
                    f"{named}: item_ttl must be a duration over 0; got {self.item_ttl!r}"
                )
        self._read = item_reader(self.of, self.by, named)
        self._sets_timers = False

    def add_to(
        self,
        app: AppDefinition,
        *,
        every: Duration | None = None,
        every_events: int | None = None,
        ttl: Duration | None = None,
        **placement: Any,
    ) -> None:
        """Adds the element to an application. By default `output` is called at each event."""
        where = f"element {placement.get('name') or type(self).__name__!r}"
        if self._ttl and placement.get("clock") == "wall":
            raise DefinitionError(
                f"{where}: clock must be 'event', since items expire in event time; got 'wall'"
            )
        prototype = copy(self)
        if every is None:
            # With `every`, nothing is emitted within a slot, so items can expire at its end.
            prototype._sets_timers = bool(self._ttl)
            every_events = every_events or 1
        if self._ttl:
            # The slate must live long enough to emit the empty list.
            slot = 0 if every is None else microseconds(every, f"{where}: every")
            if ttl is None:
                ttl = timedelta(microseconds=2 * (self._ttl + slot) + 1)
            elif microseconds(ttl, f"{where}: ttl") <= self._ttl + slot:
                raise DefinitionError(
                    f"{where}: ttl must be longer than item_ttl and every together, or the list "
                    f"would expire before its last item; leave it out; got {ttl!r}"
                )
        super(Sort, prototype).add_to(
            app, every=every, every_events=every_events, ttl=ttl, **placement
        )

    def process_event(self, event: Event) -> Iterator[SetTimer]:
        item, value = self._read(event)
        ts, known = event.ts, self.items.get(item)
        if known is not None:
            # Values of the same microsecond arrive in any order.
            value = max(value, known[0]) if known[1] == ts else value
            ts = max(ts, known[1])
        if self.above is not None and value <= self.above:
            self.items.pop(item, None)
            return
        self.items[item] = [value, ts]
        if len(self.items) > self.size + self.spare:
            self._leave_out()
        if self._sets_timers and not self.next_expiry:
            self.next_expiry = event.ts + self._ttl + 1
            yield timer(at=self.next_expiry, name=EXPIRY)

    def _leave_out(self) -> None:
        last = max(self.items, key=lambda item: rank(item, self.items[item][0]))
        value, ts = self.items.pop(last)
        if not self.left_out:
            self.left_out = [value, last, ts]
            return
        best, item, latest = self.left_out
        if rank(last, value) < rank(item, best):
            best, item = value, last
        self.left_out = [best, item, max(ts, latest)]

    def output(self) -> Iterator[Emit]:
        if self._ttl:
            self._expire(self.time)
        top = self._top()
        # `left_out` matters only if it may belong in the list.
        exact = not self.left_out or (
            len(top) == self.size and rank(*top[-1]) <= rank(self.left_out[1], self.left_out[0])
        )
        left_out = None if exact else self.left_out[:2]
        if self.told == [top, left_out] or not (self.told or top or left_out):
            return
        self.told = [top, left_out]
        self.sent += 1
        content = {"top": top, "exact": exact, "left_out": left_out, "sent": self.sent}
        yield from self.to_all({"key": self.key, **content}, key=self._group())

    def on_timer(self, timed: Timer) -> Iterator[Emit | SetTimer]:
        yield from self.output()
        times = [ts for _, ts in self.items.values()] + self.left_out[2:]
        self.next_expiry = min(times) + self._ttl + 1 if times else 0
        if times:
            yield timer(at=self.next_expiry, name=EXPIRY)

    def _top(self) -> list[Entry]:
        best = sorted(self.items, key=lambda item: rank(item, self.items[item][0]))
        return [[item, self.items[item][0]] for item in best[: self.size]]

    def _expire(self, now: int) -> None:
        """Removes the items that are older than `item_ttl`, by the same rule as a slate's ttl."""
        oldest = now - self._ttl
        self.items = {item: entry for item, entry in self.items.items() if entry[1] >= oldest}
        if self.left_out and self.left_out[2] < oldest:
            self.left_out = []

    def _group(self) -> str:
        """Returns the key under which the list is sent."""
        return self.key
