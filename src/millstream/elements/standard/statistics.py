"""Sum, mean, min, max: running aggregates of a number, one for each key.

They use the library of algebras (`millstream.algebra`): an element lifts each event and merges it
into its total, which the slate holds in the algebra's written form. So sums are exact in any order
of events, and `total` equals the slate of the same `App.aggregate`. An event in which the number is
missing or is not a number becomes a dead letter.
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

_INTERNAL = frozenset({"exact", "exact_squares", "sketch", "bits", "buckets", "short", "rest"})


def readable(written: dict[str, Any]) -> dict[str, Any]:
    """Returns the part of an algebra's written form that is for readers, without its internal
    state.

    >>> readable({"sum": 0.35, "exact": "12610078956637389*2**-55"})
    {'sum': 0.35}
    """
    return {name: value for name, value in written.items() if name not in _INTERNAL}


def merged(algebra: Algebra, written: dict[str, Any] | None, event: Event) -> dict[str, Any]:
    """Returns the written form with one more event merged in. None is the form of no events."""
    partial = algebra.read(written) if written else algebra.zero()
    more: dict[str, Any] = algebra.write(algebra.merge(partial, algebra.lift(event)))
    return more


@dataclass
class Statistic(Element):
    """A running aggregate of the number `of` (a field or dotted path; None: the value itself)."""

    statistic: ClassVar[str]
    """The name of its algebra."""

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
