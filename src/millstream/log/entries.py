"""The entries of an append, and finding out which of them are new."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from millstream.errors import LogError
from millstream.log.blocks import Tag


class Entry(NamedTuple):
    """Records that are appended together. With a tag they are appended once, even if repeated.

    `digest`, of 64 bits, tells whether a repeat has the same records.
    """

    lines: list[bytes]
    tag: str = ""
    digest: int = 0


class Appended(NamedTuple):
    """The number of an entry's first record; `repeated` if an earlier append has written it."""

    first: int
    count: int  # type: ignore[assignment]  # hides tuple.count
    repeated: bool


class TagMismatch(LogError):
    """A tag came again with another digest: the entry was not appended."""


class KnownTag(Protocol):
    """Looks up the result of a tag's first append."""

    def get(self, tag: str) -> Tag | None: ...


def sorted_out(
    entries: Sequence[Entry], records: int, known: KnownTag | None, log: str
) -> tuple[list[bytes], list[Tag], list[Appended | TagMismatch]]:
    """Returns the records and the tags that are new to a log, and the result of each entry.

    `records` is the number of records in the log. `known` None: all entries are new. `log` is the
    log's name for errors.
    """
    lines: list[bytes] = []
    fresh: dict[str, Tag] = {}
    results: list[Appended | TagMismatch] = []
    for entry in entries:
        before = None
        if entry.tag and known is not None:
            before = fresh.get(entry.tag) or known.get(entry.tag)
        if before is None:
            result = Appended(records + len(lines), len(entry.lines), False)
            lines += entry.lines
            if entry.tag:
                fresh[entry.tag] = Tag(entry.tag, result.first, result.count, entry.digest)
            results.append(result)
        elif before.digest == entry.digest:
            results.append(Appended(before.first, before.count, True))
        else:
            results.append(
                TagMismatch(
                    f"log {log}: tag {entry.tag!r} was used for {before.count} other "
                    f"records, from record {before.first} on; send new records with a new tag"
                )
            )
    return lines, list(fresh.values()), results
