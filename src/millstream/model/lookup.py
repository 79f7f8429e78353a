"""Lookups as the model sees them: tables of other systems that a map reads.

A map names its lookups, or they are found in its code: among the global and enclosing names that
it uses, and that the functions it calls by name use. So a drawing shows them, `check` sees them,
and a test can put a dict in their place. Updates have none: their memory is their slate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import CodeType, FunctionType
from typing import Any, Protocol, TypeGuard, runtime_checkable

from millstream.errors import DefinitionError

DEPTH = 3
"""The depth to which calls of other functions are followed."""


@runtime_checkable
class KnownLookup(Protocol):
    """A lookup, as the model sees it."""

    name: str

    @property
    def __modules__(self) -> tuple[str, ...]:
        """The modules whose code it calls."""
        ...

    @property
    def is_elsewhere(self) -> bool:
        """True if it reads another system by its address, which a test must not do."""
        ...

    @property
    def shown(self) -> str:
        """A short description of where it reads, without secrets."""
        ...

    def known(self) -> None:
        """Called once a map is known to read it."""
        ...

    def given(self, rows: Mapping[str, Any] | None) -> None:
        """Answer from these rows, as in a test; None: as declared."""
        ...


def lookups_of(
    function: Callable[..., Any], named: Iterable[KnownLookup] = ()
) -> tuple[KnownLookup, ...]:
    """Returns the lookups that were named, then those found in the function's code; each once."""
    by_name: dict[str, KnownLookup] = {lookup.name: lookup for lookup in named}
    for lookup in _used(function, DEPTH, {}):
        by_name.setdefault(lookup.name, lookup)
    return tuple(by_name.values())


def refuse_lookups(function: Callable[..., Any], where: str) -> None:
    """DefinitionError if the function, which does not belong to a map, reads a lookup."""
    for lookup in lookups_of(function):
        raise DefinitionError(
            f"{where} reads the lookup {lookup.name!r}, and only a map may: what an update makes "
            "of its slate must not depend on another system; read it in a map before, and let "
            "that emit what the update needs"
        )


def check_lookup_names(lookups: Iterable[KnownLookup]) -> None:
    """DefinitionError if two lookups have the same name."""
    named: dict[str, KnownLookup] = {}
    for lookup in lookups:
        if named.setdefault(lookup.name, lookup) is not lookup:
            raise DefinitionError(
                f"lookup {lookup.name!r}: each lookup must have a name of its own, and there are "
                "two of this name"
            )


def _used(function: object, depth: int, seen: dict[int, int]) -> Iterator[KnownLookup]:
    function = getattr(function, "function", function)  # a handle of a decorator
    function = getattr(function, "__func__", function)
    if not isinstance(function, FunctionType) or seen.get(id(function), -1) >= depth:
        return
    seen[id(function)] = depth
    for value in _values(function):
        if _is_lookup(value):
            yield value
        elif depth:
            yield from _used(value, depth - 1, seen)


def _is_lookup(value: object) -> TypeGuard[KnownLookup]:
    # This attribute is tested first because the whole protocol check takes 50 times as long.
    return hasattr(type(value), "is_elsewhere") and isinstance(value, KnownLookup)


def _values(function: FunctionType) -> Iterator[Any]:
    for name in _names(function.__code__):
        if name in function.__globals__:
            yield function.__globals__[name]
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # not set yet
            continue


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
