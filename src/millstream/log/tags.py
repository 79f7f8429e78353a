"""The result of each idempotency tag's first append, for as long as a repeat may come.

Tags are stored in the blocks, so they are as durable as the records. Memory holds those of the last
24 hours, at most the newest million. Tags are forgotten a segment at a time, so a tag may be known
for longer, and a restart does not change which tags are known.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence

from millstream.log.blocks import Tag
from millstream.log.retention import DAY, Sealed

TAG_TTL = DAY
TAG_LIMIT = 1_000_000


def remembered(sealed: Sequence[Sealed], now: int) -> int:
    """The number of newest sealed segments whose tags must be remembered.

    >>> segments = [Sealed(0, 0, 10, last_stamp=5), Sealed(10, 4, 20, last_stamp=DAY)]
    >>> remembered(segments, now=DAY + 6)
    1
    """
    old = sum(segment.last_stamp < now - TAG_TTL for segment in sealed)
    return len(sealed) - old


class Tags:
    """The tags, oldest first."""

    is_complete = False
    """Always False: any older tag may be asked for."""

    def __init__(self, limit: int = TAG_LIMIT) -> None:
        self._limit = limit
        self._known: OrderedDict[str, Tag] = OrderedDict()

    def __len__(self) -> int:
        return len(self._known)

    def get(self, tag: str) -> Tag | None:
        return self._known.get(tag)

    def add(self, tags: Iterable[Tag]) -> None:
        for tag in tags:
            self._known.pop(tag.tag, None)
            self._known[tag.tag] = tag
        while len(self._known) > self._limit:
            self._known.popitem(last=False)

    def forget_before(self, record: int) -> None:
        while self._known and next(iter(self._known.values())).first < record:
            self._known.popitem(last=False)
