"""Changing the form of stored slates: versions, migrations and former names.

An update's slates have a **version**, 1 by default, which is stored with each slate. A
**migration** is a function from a slate of one version to a slate of another: it gets the stored
slate as a dict, and changes it or returns another. A slate whose version differs from the update's
goes through the shortest path of migrations when it is read. If there is no path, or the result
does not fit, reading it fails (SlateError).

A field that was only renamed needs neither: `field(formerly="n")` reads what was stored as `n`.
"""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar, overload

from millstream.errors import DefinitionError

T = TypeVar("T")
FORMERLY = "millstream.formerly"
HIGHEST_VERSION = 0xFFFF


@dataclasses.dataclass(frozen=True, slots=True)
class Migration:
    """Turns slates of version `before` into slates of version `after`."""

    before: int
    after: int
    function: Callable[[dict[str, Any]], Any]


def migration_path(
    migrations: Iterable[Migration], stored: int, wanted: int
) -> tuple[Migration, ...] | None:
    """Returns the shortest path from one version to another; None if there is none.

    >>> steps = [Migration(1, 2, dict), Migration(2, 3, dict), Migration(1, 3, dict)]
    >>> [(step.before, step.after) for step in migration_path(steps, 1, 3)]
    [(1, 3)]
    >>> migration_path(steps, 3, 3), migration_path(steps, 3, 1)
    ((), None)
    """
    steps = tuple(migrations)
    paths: dict[int, tuple[Migration, ...]] = {stored: ()}
    reached = deque([stored])
    while reached:
        version = reached.popleft()
        if version == wanted:
            return paths[version]
        for step in steps:
            if step.before == version and step.after not in paths:
                paths[step.after] = (*paths[version], step)
                reached.append(step.after)
    return None


@overload
def field(*, default: T, formerly: str | Iterable[str]) -> T: ...
@overload
def field(*, default_factory: Callable[[], T], formerly: str | Iterable[str]) -> T: ...
def field(
    *,
    formerly: str | Iterable[str],
    default: Any = dataclasses.MISSING,
    default_factory: Any = dataclasses.MISSING,
) -> Any:
    """Declares a field of a dataclass slate that had other names: a value stored under one of them
    is read as this field.

    >>> @dataclasses.dataclass
    ... class Count:
    ...     visits: int = field(default=0, formerly="n")
    """
    names = (formerly,) if isinstance(formerly, str) else tuple(formerly)
    return dataclasses.field(
        default=default, default_factory=default_factory, metadata={FORMERLY: names}
    )


def former_names(slate: type) -> dict[str, str]:
    """Maps each former name of a slate's fields to its present name."""
    if not dataclasses.is_dataclass(slate):
        return {}
    fields = dataclasses.fields(slate)
    known = {slate_field.name for slate_field in fields}
    names: dict[str, str] = {}
    for slate_field in fields:
        for name in slate_field.metadata.get(FORMERLY, ()):
            if name in known or name in names:
                raise DefinitionError(
                    f"slate {slate.__name__}: field {slate_field.name!r} was formerly {name!r}, "
                    "which must not be the name, or a former name, of another field"
                )
            names[name] = slate_field.name
    return names


def check_version(version: object, where: str) -> None:
    if isinstance(version, bool) or not isinstance(version, int):
        raise DefinitionError(f"{where}: version must be a whole number; got {version!r}")
    if not 1 <= version <= HIGHEST_VERSION:
        raise DefinitionError(
            f"{where}: version must be from 1, which slates without one have, to "
            f"{HIGHEST_VERSION}; got {version}"
        )


def as_migrations(given: Mapping[tuple[int, int], Callable[..., Any]]) -> tuple[Migration, ...]:
    """Returns the migrations of a mapping such as `{(1, 2): function}`."""
    return tuple(Migration(*versions, function) for versions, function in given.items())
