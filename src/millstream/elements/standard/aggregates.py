"""The aggregates in the configuration of an element: algebras over some events, and their ratios.

    aggregates = { serves = { name = "count", stream = "serves" },
                   clicks = { name = "count", where = { kind = "click" } },
                   spent  = { name = "sum", of = "price" },
                   events = "count" }
    ratios     = { ctr = ["clicks", "serves"] }

`stream` and `where` select the events: those of that stream, those that match the conditions.
`name` is an algebra of the library, and the other options are its arguments.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from inspect import signature
from typing import Any

from millstream.algebra import BUILT_IN
from millstream.elements.standard.statistics import readable
from millstream.errors import DefinitionError
from millstream.model.algebra import Algebra
from millstream.model.conditions import Conditions, conditions
from millstream.model.event import Event
from millstream.nearest import did_you_mean, nearest

_NUMBERS = ("count", "sum", "mean", "min", "max", "variance")
"""The algebras whose answer is one exact number, or null."""


@dataclass(frozen=True, slots=True)
class Aggregate:
    """An algebra, and the selection of its events."""

    algebra: Algebra
    stream: str | None = None
    where: Conditions | None = None

    def takes(self, event: Event) -> bool:
        """True if the event is selected."""
        if self.stream is not None and event.stream != self.stream:
            return False
        return self.where is None or self.where.hold(event.value)

    def shown(self, partial: Any) -> Any:
        """Returns the form for readers: only the answer if it is exact, otherwise with its
        bounds."""
        written = readable(self.algebra.write(partial))
        return written[self.algebra.name] if self.algebra.error is None else written


def aggregates_of(given: object, taken: tuple[str, ...], where: str) -> dict[str, Aggregate]:
    """Parses the aggregates of a configuration. Raises DefinitionError if one is not valid.

    `taken` are the names of the element's own fields, which an aggregate must not have.
    """
    if not isinstance(given, dict) or not given:
        raise DefinitionError(
            f"{where}: aggregates must be a table of one or more, as in "
            f"{{ spent = {{ name = 'sum', of = 'price' }} }}; got {given!r}"
        )
    _check_names("aggregates", given, taken, where)
    return {
        name: _aggregate(options, f"{where}: aggregates", name) for name, options in given.items()
    }


def _aggregate(entry: object, where: str, label: str) -> Aggregate:
    options = dict(entry) if isinstance(entry, dict) else {"name": entry}
    name = options.pop("name", None)
    if not isinstance(name, str) or name not in BUILT_IN:
        hint = f"; {did_you_mean(name, BUILT_IN)}" if isinstance(name, str) else ""
        raise DefinitionError(
            f"{where} must name for {label!r} one of {', '.join(BUILT_IN)}, or be a table of the "
            f"name and its arguments; got {entry!r}{hint}"
        )
    stream, wanted = options.pop("stream", None), options.pop("where", None)
    if stream is not None and not isinstance(stream, str):
        raise DefinitionError(
            f"{where} must have for {label!r} the name of a stream as its stream; got {stream!r}"
        )
    problem = f"{where} must select the events of {label!r}: where"
    selected = None if wanted is None else conditions(wanted, problem)
    algebra = algebra_of(name, options, f"{where} must have for {label!r}", ("stream", "where"))
    return Aggregate(algebra, stream, selected)


def algebra_of(
    name: str, options: dict[str, Any], must: str, others: tuple[str, ...] = ()
) -> Algebra:
    """Builds an algebra of the library with its arguments. Raises DefinitionError with a message
    that begins with `must`.

    `others` are further options that are allowed, which the caller handles.
    """
    parameters = signature(BUILT_IN[name]).parameters
    takes = [*parameters, *others]
    must = f"{must} the arguments of {name}"
    problem = f"{must} ({', '.join(takes) or 'nothing'}); got"
    for option in options:
        if option not in parameters:
            near = nearest(option, takes)
            hint = "" if near is None else f"; did you mean {near!r}?"
            raise DefinitionError(f"{problem} {option!r}{hint}")
    for option, parameter in parameters.items():
        if parameter.default is parameter.empty and option not in options:
            raise DefinitionError(f"{problem} no {option!r}")
    try:
        return BUILT_IN[name](**options)
    except DefinitionError as error:
        raise DefinitionError(f"{must}; {error}") from None


def check_ratios(
    given: object, aggregates: dict[str, Aggregate], taken: tuple[str, ...], where: str
) -> None:
    """Raises DefinitionError if `given` is not a table of ratios of two of the aggregates."""
    if not isinstance(given, dict):
        raise DefinitionError(
            f"{where}: ratios must be a table, as in {{ ctr = ['clicks', 'serves'] }}; "
            f"got {given!r}"
        )
    _check_names("ratios", given, (*taken, *aggregates), where)
    numbers = [name for name, aggregate in aggregates.items() if aggregate.algebra.name in _NUMBERS]
    for name, pair in given.items():
        if (
            not isinstance(pair, list)
            or len(pair) != 2
            or not all(isinstance(part, str) and part in numbers for part in pair)
        ):
            raise DefinitionError(
                f"{where}: ratios must give {name!r} two aggregates that are numbers (there are: "
                f"{', '.join(numbers) or 'none'}), the dividend and the divisor; got {pair!r}"
            )


def ratio(divided: Any, divisor: Any) -> float | None:
    """Divides two numbers. None if there is no finite result."""
    if divided is None or not divisor:
        return None
    try:
        quotient = divided / divisor
    except OverflowError:
        return None
    return quotient if math.isfinite(quotient) else None


def _check_names(field: str, names: dict[Any, Any], taken: tuple[str, ...], where: str) -> None:
    for name in names:
        if not isinstance(name, str) or not name or name in taken:
            raise DefinitionError(
                f"{where}: {field} must have names other than {', '.join(taken)}; got {name!r}"
            )
