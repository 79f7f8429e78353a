"""Aggregates as a configuration names them: an algebra, of which events, and ratios of two.

    aggregates = { serves = { name = "count", stream = "serves" },
                   clicks = { name = "count", where = { kind = "click" } },
                   spent  = { name = "sum", of = "price" },
                   events = "count" }
    ratios     = { ctr = ["clicks", "serves"] }

`name` and what is left are an algebra of the library and its arguments. `stream` and `where` say
which events it is made of: those of that stream, those that the conditions hold for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from inspect import signature
from typing import Any

from millstream.algebra import BUILT_IN
from millstream.elements.statistics import readable
from millstream.errors import DefinitionError
from millstream.model.algebra import Algebra
from millstream.model.conditions import Conditions, conditions
from millstream.model.event import Event
from millstream.nearest import did_you_mean, nearest

_NUMBERS = ("count", "sum", "mean", "min", "max", "variance")
"""The algebras whose answer is one exact number, or null."""


@dataclass(frozen=True, slots=True)
class Aggregate:
    """An algebra, and which events it is made of."""

    algebra: Algebra
    stream: str | None = None
    where: Conditions | None = None

    def takes(self, event: Event) -> bool:
        """Whether an event is one of those."""
        if self.stream is not None and event.stream != self.stream:
            return False
        return self.where is None or self.where.hold(event.value)

    def shown(self, partial: Any) -> Any:
        """What readers see: the answer alone if it is exact, with its bounds if it is not."""
        written = readable(self.algebra.write(partial))
        return written[self.algebra.name] if self.algebra.error is None else written


def aggregates_of(given: object, taken: tuple[str, ...], where: str) -> dict[str, Aggregate]:
    """The aggregates of a configuration; DefinitionError for what is none.

    `taken` are the names that the element emits itself.
    """
    if not isinstance(given, dict) or not given:
        raise DefinitionError(
            f"{where}: aggregates must be a table of one or more, as in "
            f"{{ spent = {{ name = 'sum', of = 'price' }} }}; got {given!r}"
        )
    _check_names("aggregates", given, taken, where)
    return {name: _aggregate(one, f"{where}: aggregates", name) for name, one in given.items()}


def _aggregate(given: object, where: str, called: str) -> Aggregate:
    options = dict(given) if isinstance(given, dict) else {"name": given}
    name = options.pop("name", None)
    if not isinstance(name, str) or name not in BUILT_IN:
        hint = f"; {did_you_mean(name, BUILT_IN)}" if isinstance(name, str) else ""
        raise DefinitionError(
            f"{where} must name for {called!r} one of {', '.join(BUILT_IN)}, or be a table of the "
            f"name and its arguments; got {given!r}{hint}"
        )
    stream, said = options.pop("stream", None), options.pop("where", None)
    if stream is not None and not isinstance(stream, str):
        raise DefinitionError(
            f"{where} must have for {called!r} the name of a stream as its stream; got {stream!r}"
        )
    which = f"{where} must say for {called!r} which events it is of: where"
    held = None if said is None else conditions(said, which)
    algebra = algebra_of(name, options, f"{where} must have for {called!r}", ("stream", "where"))
    return Aggregate(algebra, stream, held)


def algebra_of(
    name: str, options: dict[str, Any], must: str, others: tuple[str, ...] = ()
) -> Algebra:
    """An algebra of the library with its arguments; DefinitionError, which begins with `must`.

    `others` are the words that may stand among the arguments, for someone else.
    """
    parameters = signature(BUILT_IN[name]).parameters
    takes = [*parameters, *others]
    must = f"{must} what {name} takes"
    given = f"{must} ({', '.join(takes) or 'nothing'}); got"
    for option in options:
        if option not in parameters:
            near = nearest(option, takes)
            hint = "" if near is None else f"; did you mean {near!r}?"
            raise DefinitionError(f"{given} {option!r}{hint}")
    for option, parameter in parameters.items():
        if parameter.default is parameter.empty and option not in options:
            raise DefinitionError(f"{given} no {option!r}")
    try:
        return BUILT_IN[name](**options)
    except DefinitionError as error:
        raise DefinitionError(f"{must}; {error}") from None


def check_ratios(
    given: object, aggregates: dict[str, Aggregate], taken: tuple[str, ...], where: str
) -> None:
    """DefinitionError for what is not a ratio of two of the aggregates."""
    if not isinstance(given, dict):
        raise DefinitionError(
            f"{where}: ratios must be a table, as in {{ ctr = ['clicks', 'serves'] }}; "
            f"got {given!r}"
        )
    _check_names("ratios", given, (*taken, *aggregates), where)
    numbers = [name for name, one in aggregates.items() if one.algebra.name in _NUMBERS]
    for name, pair in given.items():
        if (
            not isinstance(pair, list)
            or len(pair) != 2
            or not all(isinstance(one, str) and one in numbers for one in pair)
        ):
            raise DefinitionError(
                f"{where}: ratios must give {name!r} two aggregates that are numbers (there are: "
                f"{', '.join(numbers) or 'none'}), the divided and the divisor; got {pair!r}"
            )


def ratio(divided: Any, divisor: Any) -> float | None:
    """One number by another; null where there is none."""
    if divided is None or not divisor:
        return None
    try:
        found = divided / divisor
    except OverflowError:
        return None
    return found if math.isfinite(found) else None


def _check_names(field: str, given: dict[Any, Any], taken: tuple[str, ...], where: str) -> None:
    for name in given:
        if not isinstance(name, str) or not name or name in taken:
            raise DefinitionError(
                f"{where}: {field} must have names other than {', '.join(taken)}; got {name!r}"
            )
