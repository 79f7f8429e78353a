"""Filters letters by function, error, key and time."""

from __future__ import annotations

from typing import Annotated, get_args

import msgspec

from millstream.letters.letter_row import LetterRow
from millstream.messages.letters import LetterKind
from millstream.model.letter_records import why_not_whole
from millstream.model.rules import DeadLetter

KINDS: tuple[LetterKind, ...] = get_args(LetterKind)


class LetterFilter(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The criteria for letters to retry. A criterion that is left out matches all."""

    kind: LetterKind = "deadletters"
    function: str | None = None
    """The map or update that failed, or that dropped or diverted the event."""
    stream: str | None = None
    error: str | None = None
    """A part of the error's text."""
    key: str | None = None
    since: int | None = None
    """Matches letters that were set aside at this time or later, in microseconds."""
    until: int | None = None
    """Matches letters that were set aside before this time."""
    limit: Annotated[int, msgspec.Meta(ge=0, le=1 << 53)] | None = None
    """The maximum number of letters, oldest first."""
    dry_run: bool = False
    """True to only count the letters."""

    def takes(self, letter: LetterRow, stamp: int) -> bool:
        """True if a letter that was set aside at `stamp` matches."""
        if self.kind != "diverted" and self.function not in (None, letter.function):
            return False
        if self.stream not in (None, letter.stream) or self.key not in (None, letter.key):
            return False
        if self.error is not None and self.error not in (letter.error or ""):
            return False
        return (self.since is None or stamp >= self.since) and (
            self.until is None or stamp < self.until
        )


def why_not(letter: LetterRow | DeadLetter) -> str | None:
    """Returns the reason why a letter cannot be retried; None if it can."""
    if letter.timer is not None:
        return "a timer, which is spent once it has fired"
    if letter.stream == "":
        return "a merge of several events of an aggregate, which can no longer be told apart"
    return why_not_whole(letter.value, letter.form, letter.line) if letter.is_record else None
