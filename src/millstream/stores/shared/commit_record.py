"""The record of a commit: creating the object that holds it commits a batch."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from millstream.stores.contract import ChangesRef
from millstream.stores.shared.manifest import BaseRef, PackRef, ShardManifest

COMMITS = "commits/"
LATEST = "latest"


class CommitRecord(msgspec.Struct, kw_only=True):
    """The record of one batch."""

    batch: int
    epoch: int
    id: str
    """A unique id of this record, by which its writer recognizes it."""
    written: int
    """The wall time, in microseconds."""
    host: str
    """The host of the driver."""
    progress: bytes
    """A `Progress` as JSON: the content of the file `progress` in a local store."""
    changes: list[ChangesRef] = []
    bases: list[BaseRef] = []
    packs: list[PackRef] = []
    output: bytes = b""
    """Staged output that is small enough to be stored here."""
    manifest_at: int
    """The last commit, up to this one, that has a manifest."""
    manifest: ShardManifest | None = None
    """The manifest after this commit; None in most commits."""
    facts: bytes | None = None
    """The content of `store.json`: with each manifest, and when it has changed."""
    description: bytes | None = None
    """The content of `app.json`, with the facts, once there is one."""


decode_commit = msgspec.msgpack.Decoder(CommitRecord).decode


def commit_name(batch: int) -> str:
    """The name of the object whose creation commits a batch.

    >>> commit_name(123)
    'commits/000000000123'
    """
    return f"{COMMITS}{batch:012d}"


def batch_in(name: str) -> int:
    """The batch of a commit's name."""
    return int(name.removeprefix(COMMITS))


def encode_commit(commit: CommitRecord) -> bytes:
    return msgspec.msgpack.encode(commit)


@dataclass
class StoreState:
    """The state of a store after all commits up to a batch."""

    batch: int
    epoch: int
    progress: bytes
    written: int
    manifest_at: int
    facts: bytes
    description: bytes | None
    output: bytes = b""
    """The output of the last batch."""
    manifest: ShardManifest = field(default_factory=ShardManifest)

    def take(self, commit: CommitRecord) -> list[str]:
        """Apply the next commit; returns the names of objects that are no longer needed."""
        assert commit.batch == self.batch + 1, "commits are taken in one after the other"
        self.batch, self.epoch, self.progress = commit.batch, commit.epoch, commit.progress
        self.written, self.output = commit.written, commit.output
        self.manifest_at = commit.manifest_at
        self.facts = commit.facts or self.facts
        self.description = commit.description or self.description
        return self.manifest.take(commit.batch, commit.changes, commit.bases, commit.packs)


def state_of(commit: CommitRecord) -> StoreState:
    """The state of a store after a commit that has a manifest."""
    assert commit.manifest is not None
    assert commit.facts is not None
    return StoreState(
        commit.batch,
        commit.epoch,
        commit.progress,
        commit.written,
        commit.manifest_at,
        commit.facts,
        commit.description,
        commit.output,
        commit.manifest,
    )
