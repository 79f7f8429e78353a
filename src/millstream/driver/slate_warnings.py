"""Sentences about slates that need attention: each said once, or again when it got worse."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from millstream.model.size import shown_size
from millstream.stores.progress import Large, Unranked

KEYS = 10
"""Keys of one update that are spoken of: the application's owner knows by then."""


class LargeSlates:
    """Slates over `slate_warn`: once of each, and again when it has doubled. One a run."""

    def __init__(self, warn: int, kinds: Mapping[str, str]) -> None:
        """`warn` is the workflow's `slate_warn`, `kinds` each update's kind of slate."""
        self._warn = warn
        self._kinds = kinds
        self._said: dict[str, dict[str, int]] = {}

    def sentences(self, large: Mapping[str, Large], batch: int) -> Iterator[str]:
        """What to say of the slates that are large after a batch."""
        for update, one in large.items():
            said = self._said.setdefault(update, {})
            known = said.get(one.key)
            if one.batch != batch or (known is None and len(said) >= KEYS):
                continue
            if known is None or one.bytes >= 2 * known:
                said[one.key] = one.bytes
                what, advice = "its slate", "keep less in it, or use a table"
                if self._kinds.get(update) == "table":
                    what, advice = "an entry of its table", "use more entries, each with less"
                yield (
                    f"update {update!r}, key {one.key!r}: {what} has {shown_size(one.bytes)}, over "
                    f"slate_warn ({shown_size(self._warn)}); {advice}"
                )


class UnrankedSlates:
    """Slates whose priority could not be told: once of each update. One a run."""

    def __init__(self) -> None:
        self._said: set[str] = set()

    def sentences(self, unranked: Mapping[str, Unranked], batch: int) -> Iterator[str]:
        """What to say of the slates that got no priority in a batch."""
        for update, one in unranked.items():
            if one.batch == batch and update not in self._said:
                self._said.add(update)
                yield (
                    f"update {update!r}, key {one.key!r}: its priority could not be told "
                    f"({one.error}); slates without one are the first to go when there is no "
                    "room: let priority give a finite number for every key and slate"
                )
