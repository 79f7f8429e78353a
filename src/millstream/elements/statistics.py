"""Sum, mean, min, max: running aggregates of a number, one for each key.

What is added up, and how, is the library's of algebras (`millstream.algebra`): an element lifts
each event and merges it into what it has. The slate holds the form that the algebra writes, so
sums are exact whatever the order of the events, and a slate says what the same aggregate of
`App.aggregate` would. An event without the number, or with something else in its place, is a dead
letter.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

from millstream.algebra import BUILT_IN
from millstream.elements.element import Configured, Element
from millstream.errors import DefinitionError
from millstream.model.algebra import Algebra
from millstream.model.event import Emit, Event
from millstream.model.path import is_path

_TO_GO_ON = frozenset({"exact", "exact_squares", "sketch", "bits", "buckets", "short", "rest"})


def readable(written: dict[str, Any]) -> dict[str, Any]:
    """What is for readers in an algebra's written form, less what only serves to go on from it.

    >>> readable({"sum": 0.35, "exact": "12610078956637389*2**-55"})
    {'sum': 0.35}
    """
    return {name: value for name, value in written.items() if name not in _TO_GO_ON}


def merged(algebra: Algebra, written: dict[str, Any] | None, event: Event) -> dict[str, Any]:
    """The written form with one more event in it; None is the form of no event."""
    partial = algebra.read(written) if written else algebra.zero()
    more: dict[str, Any] = algebra.write(algebra.merge(partial, algebra.lift(event)))
    return more


@dataclass
class Statistic(Element):
    """A running aggregate of the number `of` (a field or dotted path; None: the value itself)."""

    statistic: ClassVar[str]
    """Its name in the library of algebras."""

    of: Configured[str | None] = None
    total: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.of is not None and not is_path(self.of):
            raise DefinitionError(
                f"element {type(self).__name__}: of must be a field or a dotted path of the "
                f"event's value; got {self.of!r}"
            )
        self._algebra = BUILT_IN[self.statistic](of=self.of)

    def process_event(self, event: Event) -> None:
        self.total = merged(self._algebra, self.total, event)

    def output(self) -> Iterator[Emit]:
        total = self.total or self._algebra.write(self._algebra.zero())
        yield from self.to_all({"key": self.key, **readable(total)})


@dataclass
class Sum(Statistic):
    """The sum of a number, exact. Emits `{"key": ..., "sum": ...}`."""

    statistic = "sum"


@dataclass
class Mean(Statistic):
    """The mean of a number, rounded once. Emits `{"key", "mean", "count", "sum"}`."""

    statistic = "mean"


@dataclass
class Min(Statistic):
    """The least of a number. Emits `{"key": ..., "min": ...}`."""

    statistic = "min"


@dataclass
class Max(Statistic):
    """The greatest of a number. Emits `{"key": ..., "max": ...}`."""

    statistic = "max"
