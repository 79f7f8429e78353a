"""Speaking of large slates: once of each, and again when it has doubled."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from millstream.model.size import shown_size
from millstream.stores.progress import Large

KEYS = 10
"""Keys of one update that are spoken of: the application's owner knows by then."""


class LargeSlates:
    """Remembers which large slates were spoken of. One a run."""

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
