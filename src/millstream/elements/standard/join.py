"""Join: pairs the events of two streams that have the same key and are close in time (S4, IV.A).

In a TOML file, this joins clicks to their serves by serve id:

    [elements.clicked]
    element = "join"
    keys = { clicks = "serve", serves = "serve" }
    left = "clicks"
    right = "serves"
    within = "30m"
    publishes = "clicked"

Events of both sides are kept for at least `within`, so either may come first: the later one finds
the earlier one. Each key has a timer that drops the events that are too old. If an id comes once on
each side, the timer is set once and fires once, and nothing is left.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from millstream.elements.element import Configured, Element
from millstream.elements.element_base import configuration
from millstream.elements.event_keys import attributes_of
from millstream.elements.standard.bounds import bound, check_ttl
from millstream.errors import DefinitionError, InputError
from millstream.model.app import AppDefinition
from millstream.model.event import Emit, Event, Forget, SetTimer, Timer, forget, timer
from millstream.nearest import nearest

Fields = dict[str, Any]
Picks = tuple[tuple[str, tuple[str, ...]], ...]
"""The selected fields of a side: the name in the emitted value, and the path in the event's."""


@dataclass
class Join(Element):
    """Emits each pair of a left and a right event of a key that are at most `within` apart, once.

    The value is one object: `key`, the left's fields, and the right's fields that the left does not
    have; or `key` and the fields that `select` names. With `how="left"`, a left event without a
    match is emitted alone once `within` has passed.
    """

    left: Configured[str]
    right: Configured[str]
    within: Configured[str]
    how: Configured[Literal["inner", "left"]] = "inner"
    select: Configured[dict[str, str] | None] = None
    lefts: list[tuple[int, Fields, bool]] = field(default_factory=list)
    """Left events that a right may still match: ts, fields, and whether one has matched."""
    rights: list[tuple[int, Fields]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._within = bound("Join", "within", self.within)
        configuration(self)
        if self.left == self.right:
            raise DefinitionError(
                f"element Join: right must be another stream than left; got {self.right!r} twice"
            )
        self._picks = None if self.select is None else _picks(self.select)
        of_right = () if self._picks is None else self._picks[1]
        self._alone: Fields = {name: None for name, _ in of_right}

    def add_to(self, app: AppDefinition, **placement: Any) -> None:
        if "keys" in placement:
            named = attributes_of(placement["keys"], "element Join")
            if set(named) != {self.left, self.right}:
                raise DefinitionError(
                    f"element Join: keys must name the streams left and right, {self.left!r} and "
                    f"{self.right!r}, and no others; got {', '.join(map(repr, named))}"
                )
        check_ttl("Join", "within", self._within, placement.get("ttl"))
        super().add_to(app, **placement)

    def process_event(self, event: Event) -> Iterator[Emit | SetTimer]:
        ts, within = event.ts, self._within
        if not (self.lefts or self.rights):
            yield timer(at=ts + within)
        if event.stream == self.left:
            fields, matched = self._kept(event, 0), False
            for when, right in self.rights:
                if -within <= ts - when <= within:
                    matched = True
                    yield from self._joined(right, fields)
            self.lefts.append((ts, fields, matched))
        else:
            fields = self._kept(event, 1)
            for index, (when, left, _) in enumerate(self.lefts):
                if -within <= ts - when <= within:
                    self.lefts[index] = (when, left, True)
                    yield from self._joined(fields, left)
            self.rights.append((ts, fields))

    def on_timer(self, timer: Timer) -> Iterator[Emit | SetTimer | Forget]:
        over, outer = timer.ts - self._within, self.how == "left"
        for when, left, matched in self.lefts:
            if outer and not matched and when <= over:
                yield from self._joined(self._alone, left)
        self.lefts = [entry for entry in self.lefts if entry[0] > over]
        self.rights = [entry for entry in self.rights if entry[0] > over]
        yield self._next(outer)

    def _next(self, outer: bool) -> SetTimer | Forget:
        """Sets the timer to the time at which the next unmatched left event expires or, if there is
        none, the last kept event. So a busy key has one timer per `within`, not one per event."""
        alone = [when for when, _, matched in self.lefts if outer and not matched]
        if alone:
            return timer(at=min(alone) + self._within)
        kept = [entry[0] for entry in self.lefts] + [entry[0] for entry in self.rights]
        return timer(at=max(kept) + self._within) if kept else forget()

    def _kept(self, event: Event, side: int) -> Fields:
        """Returns the fields to keep of an event: all, or only the selected ones."""
        value = event.value
        if self._picks is not None:
            return {name: _field_at(value, steps) for name, steps in self._picks[side]}
        if type(value) is not dict:
            raise InputError(
                f"element Join, stream {event.stream!r}: the value must be an object, whose fields "
                f"are joined; got {type(value).__name__}; use select for others"
            )
        return value

    def _joined(self, right: Fields, left: Fields) -> list[Emit]:
        return self.to_all({**right, **left, "key": self.key}, key=self.key)


def _picks(select: dict[str, str]) -> tuple[Picks, Picks]:
    """Returns the selected fields of the left and of the right side."""
    sides: dict[str, list[tuple[str, tuple[str, ...]]]] = {"left": [], "right": []}
    for name, path in select.items():
        side, *steps = path.split(".")
        if side not in sides or "" in steps or name == "key":
            near = None if side in sides else nearest(side, sides)
            raise DefinitionError(
                "element Join: select must have a path for each field to emit, except for 'key', "
                f"as in query = 'right.query'; got {name} = {path!r}"
                + ("" if near is None else f"; did you mean {near!r}?")
            )
        sides[side].append((name, tuple(steps)))
    return tuple(sides["left"]), tuple(sides["right"])


def _field_at(value: Any, steps: tuple[str, ...]) -> Any:
    """Returns a field of a value. None if it does not exist."""
    for step in steps:
        value = value.get(step) if type(value) is dict else None
    return value
