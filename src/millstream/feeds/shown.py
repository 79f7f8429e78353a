"""What of the stored rows a consumer is shown."""

from __future__ import annotations

from collections.abc import Iterable
from operator import itemgetter

from millstream.codec import decode_value, encode_value
from millstream.feeds.candidates import PULLED, PUSHED, Candidate, place_of
from millstream.feeds.items import How
from millstream.feeds.names import DIGITS, OF, SEP, is_reference, referred_to
from millstream.feeds.pending import Pending, Stored
from millstream.feeds.references import References
from millstream.feeds.tables import Row

_OF, _SEP = OF.encode(), SEP.encode()
_AFTER_TIME = DIGITS + 1
_name = itemgetter(0)


class Shown:
    """Makes candidates of rows, for one consumer. Those of references, and of posts that pending
    records have changed, are looked at more closely; all others stay as they are."""

    def __init__(self, unseen: Iterable[str], pending: Pending, references: References) -> None:
        """Of `unseen` producers nothing is shown that was pushed."""
        self._unseen = {one.encode() for one in unseen}
        self._pending, self._changed, self._references = pending, pending.touched, references

    def pushed(self, rows: list[Row], found: list[Candidate]) -> bool:
        """Add those of a consumer's items; their names are without the kind. Whether one may be in
        another stream too: a reference, to what others refer to as well."""
        unseen, changed = self._unseen, self._changed
        if not unseen and not changed and not _has_reference(rows):  # nearly always
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
        """The same of a producer's posts."""
        name = producer.encode()
        if name not in self._changed and not _has_reference(rows):  # nearly always
            of = _SEP + name + _SEP
            found += [(post.replace(_SEP, of, 1), kept, PULLED) for post, kept in rows]
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
        ts: int,
        origin: str,
        post: str,
        via: str | None,
        how: How,
        kept: bytes,
    ) -> None:
        """One that may have been changed, or is a reference."""
        place = place_of(ts, origin, post)
        if found and found[-1][0] == place:
            return  # by way of another one
        stored: Stored = decode_value(kept)
        if via is None:
            now = self.now(origin, post, stored)
        else:
            now = self.by_way(ts, origin, post, stored, via)
        if now is not None:
            found.append((place, encode_value(now), (how, via)))


def _has_reference(rows: list[Row]) -> bool:
    """Whether one of these has a reference's name: no other one has `OF`."""
    return _OF in b"".join(map(_name, rows))
