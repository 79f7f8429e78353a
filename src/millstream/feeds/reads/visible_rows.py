"""Filters stored rows down to those a consumer may see."""

from __future__ import annotations

from collections.abc import Iterable
from operator import itemgetter

from millstream.codec import encode_value
from millstream.feeds.names import DIGITS, OF, SEP, is_reference, referred_to
from millstream.feeds.reads.candidates import PULLED, PUSHED, Candidate, place_of
from millstream.feeds.reads.pending_records import Pending
from millstream.feeds.reads.references import References
from millstream.feeds.reads.tables import Row
from millstream.feeds.states import PostState
from millstream.feeds.stored_rows import PostRow, ReferenceRow, decode_post, decode_reference
from millstream.messages.feeds import How

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

    def pushed(self, rows: list[Row], candidates: list[Candidate]) -> bool:
        """Appends the candidates of a consumer's items. Names come without the kind. Returns True
        if one may be in another stream too, since other producers may refer to the same post."""
        unseen, changed = self._unseen, self._changed
        if not unseen and not changed and not _has_reference(rows):  # the common case
            candidates += [(place, stored, PUSHED) for place, stored in rows]
            return False
        for place, stored in rows:
            ts, producer, post = place.split(_SEP)
            post, _, by = post.partition(_OF)
            if (by or producer) in unseen:
                continue
            if by or producer in changed:
                via = by.decode() if by else None
                self._add(
                    candidates, int(ts), producer.decode(), post.decode(), via, "push", stored
                )
            else:
                candidates.append((place, stored, PUSHED))
        return True

    def pulled(self, producer: str, rows: list[Row], candidates: list[Candidate]) -> bool:
        """Appends the candidates of a producer's posts, in the same way."""
        name = producer.encode()
        if name not in self._changed and not _has_reference(rows):  # the common case
            middle = _SEP + name + _SEP
            candidates += [(post.replace(_SEP, middle, 1), stored, PULLED) for post, stored in rows]
            return False
        for row, stored in rows:
            ts, post = int(row[:DIGITS]), row[_AFTER_TIME:].decode()
            if is_reference(post):
                self._add(candidates, ts, *referred_to(post), producer, "pull", stored)
            elif name in self._changed:
                self._add(candidates, ts, producer, post, None, "pull", stored)
            else:
                candidates.append((place_of(ts, producer, post), stored, PULLED))
        return True

    def now(self, ts: int, producer: str, post: str, row: PostRow) -> PostRow | None:
        """Returns a stored post with pending changes applied; None if it was deleted."""
        return self._pending.post(producer, post, PostState(ts, row)).row

    def by_way(
        self, ts: int, origin: str, post: str, reference: ReferenceRow, via: str
    ) -> PostRow | None:
        """Returns the post behind a reference with pending changes applied; None if it was deleted
        or must not be shown."""
        row = self._references.stored(via, origin, ts, post, reference)
        return None if row is None else self.now(ts, origin, post, row)

    def _add(
        self,
        candidates: list[Candidate],
        ts: int,
        origin: str,
        post: str,
        via: str | None,
        how: How,
        stored: bytes,
    ) -> None:
        """Appends a post that may have been changed, or that is a reference."""
        place = place_of(ts, origin, post)
        if candidates and candidates[-1][0] == place:
            return  # already here through another producer
        if via is None:
            row = self.now(ts, origin, post, decode_post(stored))
        else:
            row = self.by_way(ts, origin, post, decode_reference(stored), via)
        if row is not None:
            candidates.append((place, encode_value(row), (how, via)))


def _has_reference(rows: list[Row]) -> bool:
    """True if one of the rows is a reference: only their names contain `OF`."""
    return _OF in b"".join(map(_name, rows))
