"""Retries of dead letters: POST /deadletters/retry, POST /actions/{name}/retry."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

LetterKind = Literal["deadletters", "late", "dropped", "diverted"]

# In JSON, 5.0 is a whole number too.
WholeNumber = Annotated[
    int | float | None, msgspec.Meta(extra_json_schema={"type": ["integer", "null"]})
]
LetterLimit = Annotated[
    int | float | None,
    msgspec.Meta(extra_json_schema={"type": ["integer", "null"], "minimum": 0, "maximum": 1 << 53}),
]


class RetryQuestion(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The letters to retry. A field that is left out matches all."""

    kind: LetterKind = "deadletters"
    function: str | None = None
    """The map or update that failed, or that dropped or diverted the event."""
    stream: str | None = None
    error: str | None = None
    """A part of the error's text."""
    key: str | None = None
    since: WholeNumber = None
    """Set aside at this time or later, in microseconds."""
    until: WholeNumber = None
    """Set aside before this time."""
    limit: LetterLimit = None
    """The maximum number of letters, oldest first."""
    dry_run: bool = False
    """True to only count the letters."""


class Retried(msgspec.Struct, frozen=True):
    """The result of a retry of letters."""

    given: int
    """Letters that are retried; in a dry run, that would be."""
    before: int
    """Letters that were retried earlier, and are not retried again."""
    impossible: dict[str, int] = {}
    """Letters that cannot be retried, by reason."""


class ActionRetryQuestion(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Puts the dead letters of an action back."""

    dry_run: bool = False
    """True to only count them."""


class ActionRetryAnswer(msgspec.Struct, frozen=True):
    """The dead letters of an action that were put back; with `dry_run`, that would be."""

    given: int
