"""What of the stored rows a consumer is shown: items from entries, many at a time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from millstream.feeds.items import Item, item_of
from millstream.feeds.names import OF, SEP, is_reference, referred_to
from millstream.feeds.pending import Stored
from millstream.feeds.references import References

Rows = Iterable[tuple[str, Any]]
_new = tuple.__new__


class Shown:
    """Makes items of rows, for one consumer."""

    def __init__(
        self,
        pulled: Iterable[str],
        follows: Mapping[str, int | None],
        changed: Mapping[str, Mapping[str, Stored | None]],
        references: References,
    ) -> None:
        """`pulled` are the producers whose posts are read from them; of `follows` those that are
        None are followed no more; `changed` is what is pending of stored posts."""
        self._unseen = {*pulled, *(one for one, since in follows.items() if since is None)}
        self._changed, self._references = changed, references

    def items(self, rows: Rows, found: list[Item]) -> None:
        """Add those of what was pushed."""
        unseen, changed = self._unseen, self._changed
        for name, stored in rows:
            _, ts, producer, post = name.split(SEP)
            if OF in post:
                post, _, via = post.partition(OF)
                if via not in unseen:
                    self._add_by_way(found, int(ts), producer, post, stored, via)
            elif producer not in unseen:
                now = self.now(producer, post, stored) if producer in changed else stored
                if now is not None:
                    item = (int(ts), producer, post, now["v"], "push", now.get("e"), None)
                    found.append(_new(Item, item))  # as `item_of`: this is done the most often

    def posts(self, producer: str, rows: Rows, found: list[Item]) -> None:
        """Add those of a producer's posts."""
        as_stored = producer not in self._changed
        for name, stored in rows:
            _, ts, post = name.split(SEP)
            if is_reference(post):
                origin, post = referred_to(post)
                now = self.by_way(int(ts), origin, post, stored, producer)
                if now is not None:
                    found.append(item_of(int(ts), origin, post, now, "pull", producer))
                continue
            now = stored if as_stored else self.now(producer, post, stored)
            if now is not None:
                item = (int(ts), producer, post, now["v"], "pull", now.get("e"), None)
                found.append(_new(Item, item))

    def now(self, producer: str, post: str, stored: Stored) -> Stored | None:
        """A stored post as it is by what is pending; None if it was deleted."""
        changed = self._changed.get(producer)
        return stored if changed is None else changed.get(post, stored)

    def by_way(self, ts: int, origin: str, post: str, kept: Stored, via: str) -> Stored | None:
        """The same of a reference; None also if it is not to be shown."""
        stored = self._references.stored(via, origin, ts, post, kept)
        return None if stored is None else self.now(origin, post, stored)

    def _add_by_way(
        self, found: list[Item], ts: int, origin: str, post: str, kept: Stored, via: str
    ) -> None:
        """One that was pushed by an aggregated producer, unless another one has brought it."""
        if found and found[-1].position == (ts, origin, post):
            return
        now = self.by_way(ts, origin, post, kept, via)
        if now is not None:
            found.append(item_of(ts, origin, post, now, "push", via))
