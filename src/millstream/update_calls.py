"""Calls the function of an update for one event, whatever form its declaration gives it.

This is the meaning of an update over many events at once: the reference calls it in this way, and
so does the engine for a key whose events failed together.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from millstream.errors import FunctionError
from millstream.extras import needed_by
from millstream.model.event import Event
from millstream.model.function import Update

PerEvent = Callable[[Event, Any], Any]
"""Takes an event and the slate of its key; returns effects or None."""


def per_event(update: Update) -> PerEvent:
    """Returns the update's function as one of `(event, slate)`."""
    if not update.batch:
        return update.function
    if update.across_keys:
        with needed_by(f"{update.where}: across_keys=True"):
            from millstream.update_tables import table_form  # imported here: it needs Arrow
        form = table_form(update.slate, update.values)
        return lambda event, slate: form.call_with_one(update, event, slate)

    def with_one(event: Event, slate: Any) -> None:
        call_batch(update, [event], slate)

    return with_one


def call_batch(update: Update, events: list[Event], slate: Any) -> None:
    """Calls the function of an update with `batch=True`, which must return nothing."""
    returned = update.function(events, slate)
    if returned is not None:
        raise FunctionError(
            "an update with batch=True must change its slate and return nothing; it returned "
            f"{type(returned).__name__} {returned!r}"
        )
