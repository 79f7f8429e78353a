"""What of the stored rows a consumer is shown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from millstream.codec import decode_value
from millstream.feeds.candidates import Candidate, place
from millstream.feeds.items import How
from millstream.feeds.names import MARKS, OF, SEP, referred_to
from millstream.feeds.pending import Pending, Stored
from millstream.feeds.references import References
from millstream.feeds.tables import Rows

_OF, _SEP = OF.encode(), SEP.encode()
_MARKS = tuple(mark.encode() for mark in MARKS)


class Shown:
    """Makes candidates of rows, for one consumer. Those of references, and of posts that pending
    records have changed, are looked at more closely; all others stay as they are."""

    def __init__(
        self,
        pulled: Iterable[str],
        follows: Mapping[str, int | None],
        pending: Pending,
        references: References,
    ) -> None:
        """`pulled` are the producers whose posts are read from them; of `follows` those that are
        None are followed no more."""
        gone = [one for one, since in follows.items() if since is None]
        self._unseen = {one.encode() for one in [*pulled, *gone]}
        self._pending, self._changed, self._references = pending, pending.touched, references

    def pushed(self, rows: Rows, found: list[Candidate]) -> None:
        """Add those of a consumer's items."""
        unseen, changed = self._unseen, self._changed
        for name, kept in rows:
            _, ts, producer, post = name.split(_SEP)
            if _OF in post:
                post, _, by = post.partition(_OF)
                if by not in unseen:
                    self._add(found, ts, producer, post, by.decode(), "push", kept)
            elif producer not in unseen:
                if producer in changed:
                    self._add(found, ts, producer, post, None, "push", kept)
                else:
                    found.append((ts, producer, post, None, "push", kept))

    def pulled(self, producer: str, rows: Rows, found: list[Candidate]) -> None:
        """Add those of a producer's posts."""
        name_of = producer.encode()
        changed = name_of in self._changed
        for name, kept in rows:
            _, ts, post = name.split(_SEP)
            if post.startswith(_MARKS):
                origin, id_ = referred_to(post.decode())
                self._add(found, ts, origin.encode(), id_.encode(), producer, "pull", kept)
            elif changed:
                self._add(found, ts, name_of, post, None, "pull", kept)
            else:
                found.append((ts, name_of, post, None, "pull", kept))

    def now(self, producer: str, post: str, stored: Stored) -> Stored | None:
        """A stored post as it is by what is pending; None if it was deleted."""
        changed = self._pending.changed.get(producer)
        return stored if changed is None else changed.get(post, stored)

    def by_way(self, ts: int, origin: str, post: str, kept: Stored, via: str) -> Stored | None:
        """The same of a reference; None also if it is not to be shown."""
        stored = self._references.stored(via, origin, ts, post, kept)
        return None if stored is None else self.now(origin, post, stored)

    def _add(
        self,
        found: list[Candidate],
        ts: bytes,
        origin: bytes,
        post: bytes,
        via: str | None,
        how: How,
        kept: bytes,
    ) -> None:
        """One that may have been changed, or is a reference."""
        if found and place(found[-1]) == (ts, origin, post):
            return  # by way of another one
        by, id_, now = origin.decode(), post.decode(), decode_value(kept)
        now = self.now(by, id_, now) if via is None else self.by_way(int(ts), by, id_, now, via)
        if now is not None:
            found.append((ts, origin, post, via, how, now))
