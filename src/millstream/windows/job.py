"""A continuous MapReduce job (iMR, sections 2.1 and 2.2).

    def words(record):
        for word in record["line"].split():
            yield word, 1

    job = ms.Job(map=words, combine=ms.algebra.sum(), range="10m", slide="1m")
    app.add(job, name="counts", nodes=["web1", "web2"])

`map` takes a record and yields pairs of a key and a value. `combine` merges two values of the same
key into one: an algebra, or a function `(a, b)`. Without it all values are kept. `reduce` takes a
key and its values when a window is closed, as in MapReduce. Without it the combined value is the
answer. `uncombine` removes a value again, for windows that slide.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, get_args

from millstream.errors import DefinitionError
from millstream.model.algebra import Algebra
from millstream.model.app import AppDefinition
from millstream.model.duration import Duration, microseconds
from millstream.model.event import Event
from millstream.model.function import check_arguments
from millstream.model.place import location
from millstream.nearest import did_you_mean
from millstream.windows.fidelity import FIDELITIES, Area, Error, Fidelity, Kind, Shed
from millstream.windows.placement import place
from millstream.windows.span import Axis, Span, span_of

Pairs = Iterable[tuple[str, Any]]
KINDS: dict[str, Kind] = {
    "count": "count",
    "sum": "sum",
    "mean": "mean",
    "histogram": "histogram",
}
"""The algebras whose answers have bounds, with the kind of each."""


@dataclass(frozen=True, slots=True)
class Merging:
    """The operations that merge the values of a key into one. `write` and `read` convert the result
    to JSON and back."""

    lift: Callable[[str, Any], Any]
    merge: Callable[[Any, Any], Any]
    unmerge: Callable[[Any, Any], Any] | None
    write: Callable[[Any], Any]
    read: Callable[[Any], Any]


@dataclass(frozen=True, kw_only=True)
class Job:
    """A computation over windows, and the requirements on these windows."""

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
    """The longest time that a window may stay open. It begins when the first node reaches the
    window or, if the axis is time, at the window's end if that is later."""
    fidelity: Fidelity | None = None
    reducers: int = 1
    shed: Shed = "order"
    """The agent's rule for panes that would miss the latency. `order`, as in the paper: it makes
    panes in the order of the log for as long as there is time. `drawn`: it makes the panes that
    `seed` draws, so that these are a fair sample. `never`: it gives up no panes."""
    seed: int = 0
    bounds: Kind | None = None
    """The kind of the combined value, needed for answers with bounds. A `count` or a `sum` is a
    number; a `mean` or a `ratio` is [sum, count] or [numerator, denominator]; a `histogram` is
    counts by bucket. It may be left out if `combine` is an algebra of one of these kinds."""
    most: float | tuple[float, float] | None = None
    """The range of what one record adds, for bounds on lost records. A number is the most that a
    record adds to a key, and to all keys together (the least is then 0). A pair is the least and
    the most. For a mean or a ratio it is the range of one record's value. The default for a count
    and a histogram is 1."""
    confidence: float = 0.95
    corrections: int = 0
    """A closed window is corrected when a pane of it comes late, until this many later windows are
    closed."""
    span: Span = field(init=False, compare=False)
    merging: Merging = field(init=False, compare=False)

    def __post_init__(self) -> None:
        sizes = (self.by, self.range, self.slide, self.pane, self.begin, self.extent)
        object.__setattr__(self, "span", span_of(*sizes))
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
        if self.latency is not None and microseconds(self.latency, "job: latency") < 1:
            raise DefinitionError(f"job: latency must be over 0; got {self.latency!r}")
        if self.fidelity is not None and not callable(getattr(self.fidelity, "met", None)):
            kinds = [f"{kind.__name__}(...)" for kind in FIDELITIES.values()]
            raise DefinitionError(
                f"job: fidelity must be one of {', '.join(kinds)}; got {self.fidelity!r}"
            )
        for name, least in (("reducers", 1), ("seed", 0), ("corrections", 0)):
            number = getattr(self, name)
            if type(number) is not int or number < least:
                raise DefinitionError(
                    f"job: {name} must be a whole number, {least} or more; got {number!r}"
                )
        for name, choices in (("shed", get_args(Shed)), ("bounds", (*get_args(Kind), None))):
            if getattr(self, name) not in choices:
                raise DefinitionError(
                    f"job: {name} must be one of {', '.join(filter(None, choices))}; "
                    f"got {getattr(self, name)!r}"
                )
        self._check_most()
        if isinstance(self.fidelity, Error) and self.kind is None:
            raise DefinitionError(
                "job: fidelity Error must have a value that can be bounded: give the kind of "
                f"combine's values with bounds=, one of {', '.join(get_args(Kind))}, or combine "
                "with the algebra of one; got neither"
            )
        if not isinstance(self.confidence, float) or not 0.5 <= self.confidence < 1:
            raise DefinitionError(
                f"job: confidence must be 0.5 or more and under 1; got {self.confidence!r}"
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

    def _check_most(self) -> None:
        most = self.most
        ends = most if isinstance(most, tuple) else (0, 0 if most is None else most)
        number = all(isinstance(end, int | float) and isfinite(end) for end in ends)
        if len(ends) != 2 or not number or ends[0] > ends[1]:
            raise DefinitionError(
                "job: most must be a number, 0 or more, or the least and the most as in (-5, 5); "
                f"got {most!r}"
            )

    @property
    def kind(self) -> Kind | None:
        """The kind of the combined value, for bounds: from `bounds`, or from the algebra."""
        if self.bounds is not None or not isinstance(self.combine, Algebra):
            return self.bounds
        return KINDS.get(self.combine.name)

    @property
    def draws(self) -> bool:
        """True if the panes that a node leaves out are drawn by rank."""
        drawn = isinstance(self.fidelity, Error) or self.drawn_part is not None
        return drawn or self.shed == "drawn"

    @property
    def drawn_part(self) -> float | None:
        """The part of its panes that each node draws. None: the fidelity is not an area of drawn
        panes."""
        fidelity = self.fidelity
        return fidelity.part if isinstance(fidelity, Area) and fidelity.drawn else None

    @property
    def apart(self) -> bool:
        """True if the values of each node are needed separately, to compute the variance of a
        sample. Otherwise a parent may merge the values of its children."""
        return self.kind is not None and self.draws

    @property
    def per_record(self) -> tuple[float, float] | None:
        """The least and the most that one record adds to a key. None: not known."""
        if self.most is None:
            return (0, 1) if self.kind in ("count", "histogram") else None
        return self.most if isinstance(self.most, tuple) else (0, self.most)

    @property
    def modules(self) -> set[str]:
        """The modules that define the job's functions."""
        functions = (self.map, self.combine, self.reduce, self.uncombine)
        return {getattr(function, "__module__", "") for function in functions if callable(function)}

    def answer(self, key: str, partial: Any) -> Any:
        """Returns the answer of a window for a key."""
        values = partial if self.combine is None else [self.merging.write(partial)]
        if self.reduce is not None:
            return self.reduce(key, values)
        return values if self.combine is None else values[0]

    def add_to(self, app: AppDefinition, **placement: Any) -> None:
        """Adds the functions of this job. See `placement.place` for `name`, `nodes` and `logs`."""
        for option in placement:
            if option not in PLACEMENT:
                raise DefinitionError(
                    f"job: unknown option {option!r} of add(); {did_you_mean(option, PLACEMENT)}"
                )
        for option in ("name", "nodes"):
            if option not in placement:
                raise DefinitionError(
                    "job: add() needs its name and its nodes, as in app.add(job, name='counts', "
                    f"nodes=['web1', 'web2']); {option} is missing"
                )
        place(app, self, **placement)


PLACEMENT = ("name", "nodes", "logs")


def _joined(a: list[Any], b: list[Any]) -> list[Any]:
    return [*a, *b]


def _same(value: Any) -> Any:
    return value
