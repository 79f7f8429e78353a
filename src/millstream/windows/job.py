"""A continuous MapReduce job (iMR, sections 2.1 and 2.2).

    def words(record):
        for word in record["line"].split():
            yield word, 1

    job = ms.Job(map=words, combine=ms.algebra.sum(), range="10m", slide="1m")
    app.add(job, name="counts", nodes=["web1", "web2"])

`map` takes a record and yields pairs of a key and a value. `combine` makes one value of two of the
same key: an algebra, or a function `(a, b)`; without it all values are kept. `reduce` takes a key
and its values when a window is closed, as a MapReduce job's does; without it the value is the
answer. `uncombine` takes a value out again, for windows that slide.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from millstream.errors import DefinitionError
from millstream.model.algebra import Algebra
from millstream.model.app import App
from millstream.model.duration import Duration, microseconds
from millstream.model.event import Event
from millstream.model.function import check_arguments
from millstream.model.place import location
from millstream.nearest import did_you_mean
from millstream.windows.fidelity import Fidelity
from millstream.windows.span import Axis, Span, span_of

Pairs = Iterable[tuple[str, Any]]


@dataclass(frozen=True, slots=True)
class Merging:
    """How the values of a key become one; `write` and `read` take it to JSON and back."""

    lift: Callable[[str, Any], Any]
    merge: Callable[[Any, Any], Any]
    unmerge: Callable[[Any, Any], Any] | None
    write: Callable[[Any], Any]
    read: Callable[[Any], Any]


@dataclass(frozen=True, kw_only=True)
class Job:
    """What is worked out over which windows, and what is asked of them."""

    map: Callable[[Any], Pairs]
    range: Duration | int
    slide: Duration | int | None = None
    combine: Algebra | Callable[[Any, Any], Any] | None = None
    reduce: Callable[[str, Sequence[Any]], Any] | None = None
    uncombine: Callable[[Any, Any], Any] | None = None
    pane: Duration | int | None = None
    by: Axis = "time"
    sequence: str | None = None
    """The field whose number is the axis, if `by` is "sequence"."""
    begin: Any = None
    extent: Duration | int | None = None
    latency: Duration | None = None
    """How long the others have for a window once the first node has ended it."""
    fidelity: Fidelity | None = None
    reducers: int = 1
    span: Span = field(init=False, compare=False)
    merging: Merging = field(init=False, compare=False)

    def __post_init__(self) -> None:
        given = (self.by, self.range, self.slide, self.pane, self.begin, self.extent)
        object.__setattr__(self, "span", span_of(*given))
        object.__setattr__(self, "merging", self._merging())
        for name, takes in (("map", ("record",)), ("reduce", ("key", "values"))):
            function = getattr(self, name)
            if function is not None:
                check_arguments(function, takes, f"job: {name}{location(function)}")
        if (self.by == "sequence") != (self.sequence is not None):
            raise DefinitionError(
                "job: sequence must name the field with the number, if by is 'sequence' and only "
                f"then; got by={self.by!r}, sequence={self.sequence!r}"
            )
        if self.latency is not None:
            microseconds(self.latency, "job: latency")
        if self.fidelity is not None and not callable(getattr(self.fidelity, "met", None)):
            raise DefinitionError(
                "job: fidelity must be Area(...), Spatial(...) or Temporal(...); "
                f"got {self.fidelity!r}"
            )
        if type(self.reducers) is not int or self.reducers < 1:
            raise DefinitionError(
                f"job: reducers must be a whole number, 1 or more; got {self.reducers!r}"
            )

    def _merging(self) -> Merging:
        combine = self.combine
        if isinstance(combine, Algebra):
            if self.uncombine is not None:
                raise DefinitionError(
                    "job: uncombine must be left out: the algebra has its own, or none"
                )
            return Merging(
                lambda key, value: combine.lift(Event("", 0, key, value)),
                combine.merge,
                combine.unmerge,
                combine.write,
                combine.read,
            )
        if combine is None:
            if self.uncombine is not None:
                raise DefinitionError("job: uncombine must come with combine")
            return Merging(lambda key, value: [value], _joined, None, _same, _same)
        for name, function in (("combine", combine), ("uncombine", self.uncombine)):
            if function is not None:
                check_arguments(function, ("a", "b"), f"job: {name}{location(function)}")
        return Merging(lambda key, value: value, combine, self.uncombine, _same, _same)

    @property
    def modules(self) -> set[str]:
        """The modules that its functions are in."""
        given = (self.map, self.combine, self.reduce, self.uncombine)
        return {getattr(one, "__module__", "") for one in given if callable(one)}

    def answer(self, key: str, partial: Any) -> Any:
        """What a window says of a key."""
        values = partial if self.combine is None else [self.merging.write(partial)]
        if self.reduce is not None:
            return self.reduce(key, values)
        return values if self.combine is None else values[0]

    def add_to(self, app: App, **placement: Any) -> None:
        """Add the functions of this job: see `placing.place` for its `name` and its `nodes`."""
        from millstream.windows.placing import place

        for option in placement:
            if option not in PLACEMENT:
                raise DefinitionError(
                    f"job: unknown option {option!r} of add(); {did_you_mean(option, PLACEMENT)}"
                )
        for option in PLACEMENT:
            if option not in placement:
                raise DefinitionError(
                    "job: add() needs its name and its nodes, as in app.add(job, name='counts', "
                    f"nodes=['web1', 'web2']); {option} is missing"
                )
        place(app, self, **placement)


PLACEMENT = ("name", "nodes")


def _joined(a: list[Any], b: list[Any]) -> list[Any]:
    return [*a, *b]


def _same(value: Any) -> Any:
    return value
