"""What a reader shows of references: the posts of other producers in an aggregated one's stream.

Only as much as is true as of the batch that is read, with what is pending: the post as its origin's
table has it, while the origin is a source of the aggregated producer. What a consumer follows
itself it is shown as such, and not by way of others too; what it blocks it is not shown at all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from millstream.feeds.names import entry, post_entry
from millstream.feeds.pending import Pending
from millstream.feeds.tables import Tables


class References:
    """Looks up what references are to, for one read."""

    def __init__(
        self,
        producers: str,
        tables: Tables,
        pending: Pending,
        is_hidden: Callable[[str], bool],
    ) -> None:
        """`producers` is the update whose tables these are; `is_hidden` says of an origin whether
        the consumer is shown nothing of it by way of others."""
        self._producers, self._tables, self._pending = producers, tables, pending
        self._is_hidden = is_hidden
        self._since: dict[tuple[str, str], int | None] = {}

    def stored(
        self, via: str, origin: str, ts: int, post: str, kept: dict[str, Any]
    ) -> dict[str, Any] | None:
        """A post as its origin's table has it; None if the reference is not to be shown."""
        if self._shown_since(via, origin) != kept["s"]:
            return None
        found: dict[str, Any] | None = self._tables.get(
            self._producers, origin, post_entry(ts, post)
        )
        return found

    def _shown_since(self, via: str, origin: str) -> int | None:
        """Since when an origin is a source of an aggregated producer; None if it is not, or if
        nothing of it is to be shown."""
        pair = via, origin
        if pair not in self._since:
            self._since[pair] = self._source_since(via, origin)
        return self._since[pair]

    def _source_since(self, via: str, origin: str) -> int | None:
        pending = self._pending.sources.get(via)
        if self._is_hidden(origin) or (pending is not None and origin not in pending):
            return None
        since: int | None = self._tables.get(self._producers, via, entry("source", origin))
        return since
