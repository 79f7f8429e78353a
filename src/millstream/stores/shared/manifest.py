"""The objects that make up each shard: one base, and the changes since. Pure.

A shard as of batch b is its base, if it has one, and then the frames of its *segments*, in order. A
segment is a changes object of one batch, or a pack of the changes objects of many. The manifest is
derived from the commits alone, so all hosts that have read the same commits have the same manifest.
Now and then a commit contains the whole manifest, for processes that start.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from millstream.stores.contract import ChangesRef

PACKED_TOGETHER = 64
"""The number of segments of one level that are packed into one segment of the next level."""
LEAST_BASE_BYTES = 1 << 20
"""A shard with fewer changed bytes than this gets no new base."""


class BaseRef(msgspec.Struct, frozen=True, array_like=True):
    """All rows of a shard as of the end of a batch, in parts `NAME/00`, `NAME/01` and so on."""

    name: str
    shard: int
    batch: int
    parts: int
    size: int
    lineage: tuple[int, tuple[str, ...]]
    """The last change of the shard that the base includes."""


class PackRef(msgspec.Struct, frozen=True, array_like=True):
    """An object that replaces several segments."""

    name: str
    size: int
    replaces: list[str]


class ChangesSegment(msgspec.Struct, frozen=True, array_like=True):
    """An object with the frames of some shards, of batches `first` to `last`."""

    name: str
    first: int
    last: int
    size: int
    shards: list[int]
    level: int = 0
    """The number of times that its content was packed."""


Lineage = tuple[int, tuple[str, ...]]
"""The last change of a shard: its batch, and the objects that it was written to, in order."""
NO_LINEAGE: Lineage = (-1, ())
"""The lineage of a shard that was never changed."""


class ShardManifest(msgspec.Struct, array_like=True):
    """The objects of all shards, as of a commit."""

    bases: dict[int, BaseRef] = {}
    segments: list[ChangesSegment] = []
    """In the order in which their frames must be applied."""
    lineages: dict[int, Lineage] = {}
    bytes_since: dict[int, int] = {}
    """The approximate bytes of changes in each shard since its base."""

    def take(
        self,
        batch: int,
        changes: Iterable[ChangesRef],
        bases: Iterable[BaseRef],
        packs: Iterable[PackRef],
    ) -> list[str]:
        """Apply a commit; returns the names of objects that are no longer needed."""
        for ref in changes:
            self.segments.append(ChangesSegment(ref.name, batch, batch, ref.size, ref.shards))
            for shard in ref.shards:
                known, names = self.lineages.get(shard, NO_LINEAGE)
                kept = names if known == batch else ()
                self.lineages[shard] = batch, tuple(sorted({*kept, ref.name}))
                share = ref.size // max(1, len(ref.shards))
                self.bytes_since[shard] = self.bytes_since.get(shard, 0) + share
        gone = [name for pack in packs for name in self._pack(pack)]
        return gone + [name for base in bases for name in self._rebase(base)]

    def copy(self) -> ShardManifest:
        """An independent copy."""
        return ShardManifest(
            dict(self.bases), list(self.segments), dict(self.lineages), dict(self.bytes_since)
        )

    def _pack(self, pack: PackRef) -> list[str]:
        replaced = [segment for segment in self.segments if segment.name in set(pack.replaces)]
        if len(replaced) != len(pack.replaces):
            return [pack.name]  # a base came first: the pack is not needed
        at = self.segments.index(replaced[0])
        shards = sorted({shard for segment in replaced for shard in segment.shards})
        level = 1 + max(segment.level for segment in replaced)
        first, last = replaced[0].first, replaced[-1].last
        self.segments = [segment for segment in self.segments if segment not in replaced]
        self.segments.insert(at, ChangesSegment(pack.name, first, last, pack.size, shards, level))
        return [segment.name for segment in replaced]

    def _rebase(self, base: BaseRef) -> list[str]:
        old = self.bases.get(base.shard)
        if old is not None and old.batch >= base.batch:
            return part_names(base)
        self.bases[base.shard] = base
        self.bytes_since[base.shard] = sum(
            segment.size // max(1, len(segment.shards))
            for segment in self.segments
            if base.shard in segment.shards and segment.last > base.batch
        )
        needed = [segment for segment in self.segments if self._is_needed(segment)]
        gone = [segment.name for segment in self.segments if segment not in needed]
        self.segments = needed
        return gone + ([] if old is None else part_names(old))

    def _is_needed(self, segment: ChangesSegment) -> bool:
        return any(self._base_batch(shard) < segment.last for shard in segment.shards)

    def _base_batch(self, shard: int) -> int:
        base = self.bases.get(shard)
        return -1 if base is None else base.batch

    def lineage(self, shard: int) -> Lineage:
        """The last change of a shard."""
        return self.lineages.get(shard, NO_LINEAGE)

    def segments_after(self, shard: int, batch: int) -> list[ChangesSegment]:
        """The segments that may have changes of a shard after a batch, in order."""
        return [
            segment for segment in self.segments if shard in segment.shards and segment.last > batch
        ]

    def names(self) -> set[str]:
        """The names of all objects that are needed."""
        names = {segment.name for segment in self.segments}
        for base in self.bases.values():
            names.update(part_names(base))
        return names

    def due_bases(self, limit: int) -> list[int]:
        """Up to `limit` shards whose changes are larger than their base, the largest first."""
        heavy = {
            shard: size
            for shard, size in self.bytes_since.items()
            if size > max(LEAST_BASE_BYTES, self._base_size(shard))
        }
        return sorted(heavy, key=lambda shard: -heavy[shard])[:limit]

    def _base_size(self, shard: int) -> int:
        base = self.bases.get(shard)
        return 0 if base is None else base.size

    def due_pack(self, together: int | None = None) -> list[ChangesSegment]:
        """The oldest run of segments of one level that is long enough to be packed; else empty."""
        together = PACKED_TOGETHER if together is None else together
        run: list[ChangesSegment] = []
        for segment in self.segments:
            if run and run[-1].level != segment.level:
                run = []
            run.append(segment)
            if len(run) >= together and _ends_a_batch(run, self.segments):
                return run
        return []


def _ends_a_batch(run: Sequence[ChangesSegment], segments: Sequence[ChangesSegment]) -> bool:
    """True if the run has all segments of its last batch: packs must not share a batch."""
    at = segments.index(run[-1]) + 1
    return at < len(segments) and segments[at].first > run[-1].last


def part_names(base: BaseRef) -> list[str]:
    """The objects of a base."""
    return [f"{base.name}/{part:02d}" for part in range(base.parts)]
