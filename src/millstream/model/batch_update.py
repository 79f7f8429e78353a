"""Updates over many events at once: the checks of their declaration.

The function of an update with `batch=True` gets all events of a key that a batch has, in content
order, and changes the slate. How the input is cut into batches must not matter, so the function has
to keep a law: calling it with many events gives the same slate as calling it once for each. The
calls with one event are the definition (`update_calls.per_event`). Effects belong to one event
each, so such an update has none: it does not emit, set timers or forget.

With `across_keys=True` it gets tables of many keys, with a column for each field of the slates and
of the events' values. So these are dataclasses with fields that a column can have.
"""

from __future__ import annotations

import dataclasses
import inspect
from types import NoneType, UnionType
from typing import Any, NamedTuple, Union, get_args, get_origin, get_type_hints

from millstream.errors import DefinitionError
from millstream.model.function import Update
from millstream.model.place import location
from millstream.model.slate import Table

SCALARS = (int, float, bool, str)
EVENT_COLUMNS = ("row", "key", "ts", "stream")
"""The columns that a table of events has besides those of the values."""
SLATE_COLUMNS = ("key",)


class FieldColumn(NamedTuple):
    """A column of a table of events or slates: a field of a dataclass."""

    name: str
    kind: type
    """int, float, bool or str."""
    optional: bool


def table_columns(record: type, reserved: tuple[str, ...], where: str) -> tuple[FieldColumn, ...]:
    """Returns the columns of a dataclass; DefinitionError if a field cannot be one."""
    try:
        hints = get_type_hints(record)
    except NameError as error:
        raise DefinitionError(
            f"{where} {record.__name__}: its types must be known in its module: {error}"
        ) from None
    columns = []
    for field in dataclasses.fields(record):
        column = _column(field.name, hints[field.name])
        if column is None:
            raise DefinitionError(
                f"{where} {record.__name__}: every field must be int, float, bool or str, or one "
                f"of these or None, to be a column; {field.name!r} is {field.type}: leave "
                "across_keys= out, or split the field up"
            )
        if field.name in reserved:
            raise DefinitionError(
                f"{where} {record.__name__}: a field must not be called {field.name!r}, which is a "
                "column of its own; leave the field out, or give it another name"
            )
        columns.append(column)
    return tuple(columns)


def _column(name: str, hint: Any) -> FieldColumn | None:
    optional = False
    if get_origin(hint) in (Union, UnionType):
        kinds = [kind for kind in get_args(hint) if kind is not NoneType]
        optional = len(kinds) < len(get_args(hint))
        hint = kinds[0] if len(kinds) == 1 else None
    return FieldColumn(name, hint, optional) if hint in SCALARS else None


def arguments_of(batch: bool, across_keys: bool) -> tuple[str, ...]:
    """Returns the arguments that an update's function must take."""
    if across_keys:
        return ("events", "slates")
    return ("events", "slate") if batch else ("event", "slate")


def check_batch(update: Update) -> None:
    """DefinitionError if an update over many events at once has what it cannot have."""
    where = update.where
    if update.across_keys and not update.batch:
        raise DefinitionError(f"{where}: across_keys=True must come with batch=True; add it")
    if update.values is not None and not update.across_keys:
        raise DefinitionError(
            f"{where}: values must come with batch=True, across_keys=True: only a table has a "
            f"column for each field; got {update.values!r}: leave it out"
        )
    if not update.batch:
        return
    if update.publishes:
        raise DefinitionError(
            f"{where}: publishes must be left out with batch=True, since many events have no one "
            f"time for what they emit; got {', '.join(update.publishes)}: leave batch= out, or "
            f"publish the slates with app.changes({update.name!r})"
        )
    if update.on_timer is not None:
        raise DefinitionError(
            f"{where}: its timer function{location(update.on_timer)} must be left out with "
            "batch=True: timers fire between events; leave batch= out, or use ttl="
        )
    if update.slate is Table:
        raise DefinitionError(
            f"{where}: slate must be dict or a dataclass with batch=True; got millstream.Table: "
            "leave batch= out"
        )
    if inspect.isgeneratorfunction(inspect.unwrap(update.function)):
        raise DefinitionError(
            f"{where}: with batch=True it must change its slates and yield nothing; it has a "
            "'yield': leave batch= out"
        )
    if update.across_keys:
        _check_tables(update)


def _check_tables(update: Update) -> None:
    """DefinitionError if the slates or the values cannot be columns of a table."""
    where, slate, values = update.where, update.slate, update.values
    if not dataclasses.is_dataclass(slate):
        raise DefinitionError(
            f"{where}: slate must be a dataclass with across_keys=True, since its fields are the "
            f"columns of the slates; got {slate.__name__}"
        )
    if not table_columns(slate, SLATE_COLUMNS, f"{where}: slate"):
        raise DefinitionError(f"{where}: slate {slate.__name__} must have fields; it has none")
    fields = dataclasses.fields(slate)
    frozen = slate.__dataclass_params__.frozen  # type: ignore[attr-defined]
    if frozen or hasattr(slate, "__post_init__") or not all(field.init for field in fields):
        raise DefinitionError(
            f"{where}: slate {slate.__name__} must be a plain dataclass with across_keys=True: not "
            "frozen, without __post_init__ and init=False, since it is made from columns"
        )
    if values is not None:
        if not isinstance(values, type) or not dataclasses.is_dataclass(values):
            raise DefinitionError(f"{where}: values must be a dataclass; got {values!r}")
        table_columns(values, EVENT_COLUMNS, f"{where}: values")
