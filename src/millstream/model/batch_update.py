"""Updates over many events at once: the checks of their declaration.

The function of an update with `batch=True` gets all events of a key that a batch has, in content
order, and changes the slate. How the input is cut into batches must not matter, so the function
has to keep a law: called with many events it does what it does when it is called with one event
after the other. The latter is the meaning (`update_calls.per_event`). Effects belong to one event
each, so such an update has none: it does not emit, set timers or forget.
"""

from __future__ import annotations

import inspect

from millstream.errors import DefinitionError
from millstream.model.function import Update
from millstream.model.place import location
from millstream.model.slate import Table


def arguments_of(batch: bool) -> tuple[str, ...]:
    """Returns the arguments that an update's function must take."""
    return ("events", "slate") if batch else ("event", "slate")


def check_batch(update: Update) -> None:
    """DefinitionError if an update over many events at once has what it cannot have."""
    if not update.batch:
        return
    where = update.where
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
