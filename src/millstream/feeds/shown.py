"""Filters stored rows down to those a consumer may see."""

from __future__ import annotations

from collections.abc import Iterable
from operator import itemgetter

from millstream.codec import decode_value, encode_value
from millstream.feeds.candidates import PULLED, PUSHED, Candidate, place_of
from millstream.feeds.items import How
from millstream.feeds.names import DIGITS, OF, SEP, is_reference, referred_to
from millstream.feeds.pending_records import Pending, Stored
from millstream.feeds.references import References
from millstream.feeds.tables import Row

_OF, _SEP = OF.encode(), SEP.encode()
_AFTER_TIME = DIGITS + 1
_name = itemgetter(0)


class Shown:
    """Converts rows to candidates, for one consumer. Only references, and posts that pending
    records have changed, are decoded; all other rows are passed on as they are."""

    def __init__(self, unseen: Iterable[str], pending: Pending, references: References) -> None:
        """Pushed items of `unseen` producers are not shown."""
        self._unseen = {producer.encode() for producer in unseen}
        self._pending, self._changed, self._references = pending, pending.touched, references

    def pushed(self, rows: list[Row], found: list[Candidate]) -> bool:
        """Appends the candidates of a consumer's items. Names come without the kind. Returns True
        if one may be in another stream too, since other producers may refer to the same post."""
        unseen, changed = self._unseen, self._changed
        if not unseen and not changed and not _has_reference(rows):  # the common case
            found += [(place, kept, PUSHED) for place, kept in rows]
            return False
        for place, kept in rows:
            ts, producer, post = place.split(_SEP)
            post, _, by = post.partition(_OF)
            if (by or producer) in unseen:
                continue
            if by or producer in changed:
                via = by.decode() if by else None
                self._add(found, int(ts), producer.decode(), post.decode(), via, "push", kept)
            else:
                found.append((place, kept, PUSHED))
        return True

    def pulled(self, producer: str, rows: list[Row], found: list[Candidate]) -> bool:
        """Appends the candidates of a producer's posts, in the same way."""
        name = producer.encode()
        if name not in self._changed and not _has_reference(rows):  # the common case
            middle = _SEP + name + _SEP
            found += [(post.replace(_SEP, middle, 1), kept, PULLED) for post, kept in rows]
            return False
        for row, kept in rows:
            ts, post = int(row[:DIGITS]), row[_AFTER_TIME:].decode()
            if is_reference(post):
                self._add(found, ts, *referred_to(post), producer, "pull", kept)
            elif name in self._changed:
                self._add(found, ts, producer, post, None, "pull", kept)
            else:
                found.append((place_of(ts, producer, post), kept, PULLED))
        return True

    def now(self, producer: str, post: str, stored: Stored) -> Stored | None:
        """Returns a stored post with pending changes applied; None if it was deleted."""
        changed = self._pending.changed.get(producer)
        return stored if changed is None else changed.get(post, stored)

    def by_way(self, ts: int, origin: str, post: str, kept: Stored, via: str) -> Stored | None:
        """Returns the post behind a reference with pending changes applied; None if deleted or not
        to be shown."""
        stored = self._references.stored(via, origin, ts, post, kept)
        return None if stored is None else self.now(origin, post, stored)

    def _add(
        self,
        found: list[Candidate],
        ts: int,
        origin: str,
        post: str,
        via: str | None,
        how: How,
        kept: bytes,
    ) -> None:
        """Appends a post that may have been changed, or that is a reference."""
        place = place_of(ts, origin, post)
        if found and found[-1][0] == place:
            return  # already here through another producer
        stored: Stored = decode_value(kept)
        if via is None:
            now = self.now(origin, post, stored)
        else:
            now = self.by_way(ts, origin, post, stored, via)
        if now is not None:
            found.append((place, encode_value(now), (how, via)))


def _has_reference(rows: list[Row]) -> bool:
    """True if one of the rows is a reference: only their names contain `OF`."""
    return _OF in b"".join(map(_name, rows))
