"""The entries of an append, and finding out which of them are new."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol, Self

from millstream.errors import LogError
from millstream.log.blocks import Tag


class Entry(NamedTuple):
    """Records that are appended together. With a tag they are appended once, even if repeated.

    `digest`, of 64 bits, tells whether a repeat has the same records.
    """

    payload: bytes
    """The records, joined by newlines."""
    count: int  # type: ignore[assignment]  # hides tuple.count
    """How many they are."""
    tag: str = ""
    digest: int = 0

    @classmethod
    def of(cls, lines: Sequence[bytes], tag: str = "", digest: int = 0) -> Self:
        """Makes an entry of records. Raises ValueError if one of them contains a newline."""
        payload = b"\n".join(lines)
        if payload.count(b"\n") != max(0, len(lines) - 1):
            line = next(line for line in lines if b"\n" in line)
            raise ValueError(
                f"a record is one line, with no newline inside; this has one: {line!r}"
            )
        return cls(payload, len(lines), tag, digest)

    @property
    def lines(self) -> list[bytes]:
        return self.payload.split(b"\n") if self.count else []


class Appended(NamedTuple):
    """The number of an entry's first record; `repeated` if an earlier append has written it."""

    first: int
    count: int  # type: ignore[assignment]  # hides tuple.count
    repeated: bool


class TagMismatch(LogError):
    """A tag came again with another digest: the entry was not appended."""


class NewEntries(NamedTuple):
    """What entries add to a log, and the result of each of them."""

    payload: bytes
    """Their records, joined by newlines."""
    count: int  # type: ignore[assignment]  # hides tuple.count
    tags: list[Tag]
    results: list[Appended | TagMismatch]


class KnownTag(Protocol):
    """Looks up the result of a tag's first append."""

    def get(self, tag: str) -> Tag | None: ...


def sorted_out(
    entries: Sequence[Entry], records: int, known: KnownTag | None, log: str
) -> NewEntries:
    """Returns the records and the tags that are new to a log, and the result of each entry.

    `records` is the number of records in the log. `known` None: all entries are new. `log` is the
    log's name for errors.
    """
    payloads: list[bytes] = []
    count = 0
    fresh: dict[str, Tag] = {}
    results: list[Appended | TagMismatch] = []
    for entry in entries:
        before = None
        if entry.tag and known is not None:
            before = fresh.get(entry.tag) or known.get(entry.tag)
        if before is None:
            result = Appended(records + count, entry.count, False)
            if entry.count:
                payloads.append(entry.payload)
                count += entry.count
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
    return NewEntries(b"\n".join(payloads), count, list(fresh.values()), results)
