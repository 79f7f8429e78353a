"""Checks the objects of a shared store: commits, and all objects that they name.

Each object is read whole and compared with its checksum; frames and bases are decoded. The objects
of a shard are compared with the manifest, and the manifests in commits with the commits before. The
application may run meanwhile: before an object counts as missing, the commits are read again, since
it may have been replaced and swept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import TypeVar

import msgspec

from millstream.errors import MillstreamError, PlaceDamaged, PlaceError, StoreError
from millstream.places.place import Place, persistent, read
from millstream.stores.progress import Progress, decoded
from millstream.stores.shared.changes_object import frames_in, section, shards_in
from millstream.stores.shared.commit_log import CommitLog
from millstream.stores.shared.commit_record import (
    COMMITS,
    CommitRecord,
    StoreState,
    batch_in,
    commit_name,
    decode_commit,
    state_of,
)
from millstream.stores.shared.manifest import BaseRef, ChangesSegment, ShardManifest, part_names
from millstream.stores.shared.shard_base import BasePart
from millstream.stores.shared.shared_home import staged_in
from millstream.stores.shared.staged_objects import staged_name
from millstream.verifying.findings import Findings

T = TypeVar("T")
AT_ONCE = 8
PATIENCE = 60.0
RESTORE = "restore it from a copy or an earlier version of the bucket"

Changed = dict[int, tuple[int, set[str]]]
"""By shard, the last batch that has frames, and the ids of these frames."""


def verify_place(place: Place, findings: Findings) -> None:
    """Check every object that the commits name."""
    commits = _commits(place, findings)
    if not commits:
        findings.add(place.address, "no store is there", "run the application first")
        return
    _check_chain(place, commits, findings)
    try:
        state = CommitLog(place, PATIENCE).load()
    except StoreError as error:
        if not findings.faults:  # otherwise it is reported already
            findings.add(place.address, str(error), RESTORE)
        return
    if state is None:
        return
    missing = _check_objects(place, state, findings)
    if missing:
        again = CommitLog(place, PATIENCE).load()
        named = set() if again is None else again.manifest.names()
        for name in sorted(missing & named):
            findings.add(f"{place.address}/{name}", "is missing, and a commit names it", RESTORE)


def _commits(place: Place, findings: Findings) -> list[CommitRecord]:
    """All commits that can be read, in order."""
    names = persistent(lambda: [listed.name for listed in place.list(COMMITS)], PATIENCE)
    commits = []
    for name, data in _fetched(place, names, findings):
        commit = _decoded(place, name, findings, lambda data=data: decode_commit(data))  # type: ignore[misc]
        if commit is not None:
            findings.looked["commits"] += 1
            if commit.batch != batch_in(name):
                findings.add(f"{place.address}/{name}", f"is of batch {commit.batch}", RESTORE)
            else:
                commits.append(commit)
    return commits


def _check_chain(place: Place, commits: list[CommitRecord], findings: Findings) -> None:
    """Check that commits follow each other from the first manifest on, and fit their manifests."""
    first = next((at for at, commit in enumerate(commits) if commit.manifest is not None), None)
    if first is None:
        name = commit_name(commits[-1].batch)
        findings.add(f"{place.address}/{name}", "no commit before it has a manifest", RESTORE)
        return
    state = state_of(commits[first])
    for before, commit in pairwise(commits[first:]):
        where = f"{place.address}/{commit_name(commit.batch)}"
        if commit.batch != before.batch + 1:
            gone = commit_name(before.batch + 1)
            findings.add(f"{place.address}/{gone}", "is missing, and later ones are there", RESTORE)
            if commit.manifest is None:
                return
            state = state_of(commit)
            continue
        if commit.epoch < before.epoch:
            findings.add(where, f"has epoch {commit.epoch}, after {before.epoch}", RESTORE)
        if _shards_of(commit.facts) not in (None, _shards_of(state.facts)):
            if commit.manifest is not None:
                state = state_of(commit)  # it was resharded: earlier commits do not count
            continue
        state.take(commit)
        if commit.manifest is not None:
            if _said(commit.manifest) != _said(state.manifest):
                findings.add(where, "has a manifest that does not follow from the commits", RESTORE)
            state = state_of(commit)


def _shards_of(facts: bytes | None) -> int | None:
    shards: int | None = None if facts is None else msgspec.json.decode(facts)["shards"]
    return shards


def _said(manifest: ShardManifest) -> tuple[object, ...]:
    """The parts of a manifest to compare."""
    return manifest.bases, manifest.segments, manifest.lineages


def _check_objects(place: Place, state: StoreState, findings: Findings) -> set[str]:
    """Read all objects that are named; returns the names of missing ones."""
    manifest, missing = state.manifest, set[str]()
    changed: Changed = {}
    segments = {segment.name: segment for segment in manifest.segments}
    for name, data in _fetched(place, segments, findings, missing):
        _check_segment(place, segments[name], data, changed, findings)
    for base in manifest.bases.values():
        _check_base(place, base, findings, missing)
    damaged = bool(missing) or bool(findings.faults)
    for shard, lineage in manifest.lineages.items():
        base_of = manifest.bases.get(shard)
        from_base = base_of is not None and base_of.lineage == lineage
        if damaged or from_base:
            continue
        batch, names = changed.get(shard, (-1, set()))
        if (batch, tuple(sorted(names))) != lineage:
            findings.add(
                place.address,
                f"the last change of shard {shard} must be {lineage}, and its objects have "
                f"{(batch, tuple(sorted(names)))}",
                RESTORE,
            )
    progress = decoded(state.progress)
    inline = staged_in(state.output)
    staged = {staged_name(name) for name in staged_files(progress) if name not in inline}
    for _ in _fetched(place, sorted(staged), findings, missing):
        findings.looked["staged objects"] += 1
    return missing


def staged_files(progress: Progress) -> list[str]:
    """The output that sinks do not have yet."""
    return [*progress.staged, *(name for _, names in progress.unpublished for name in names)]


def _check_segment(
    place: Place, segment: ChangesSegment, data: bytes, changed: Changed, findings: Findings
) -> None:
    where = f"{place.address}/{segment.name}"
    findings.looked["changes objects"] += 1

    def look() -> None:
        if shards_in(data) != sorted(segment.shards):
            findings.add(where, f"has shards {shards_in(data)}, not {segment.shards}", RESTORE)
        for shard in shards_in(data):
            for frame in frames_in(where, section(data, shard)):
                findings.looked["frames"] += 1
                if not segment.first <= frame.batch <= segment.last:
                    must = f"batches {segment.first} to {segment.last}"
                    findings.add(where, f"has a frame of batch {frame.batch}, not {must}", RESTORE)
                known, names = changed.get(shard, (-1, set()))
                if frame.batch < known:
                    findings.add(where, f"batch {frame.batch} comes after {known}", RESTORE)
                kept = names if frame.batch == known else set()
                changed[shard] = frame.batch, {*kept, frame.id}

    _decoded(place, segment.name, findings, look)


def _check_base(place: Place, base: BaseRef, findings: Findings, missing: set[str]) -> None:
    last: bytes | None = None
    for name, data in _fetched(place, part_names(base), findings, missing):
        part = _decoded(place, name, findings, lambda data=data: _part(data))  # type: ignore[misc]
        if part is None:
            return
        findings.looked["parts of bases"] += 1
        findings.looked["rows in bases"] += len(part.keys)
        keys = part.keys if last is None else [last, *part.keys]
        if len(part.keys) != len(part.values) or any(a >= b for a, b in pairwise(keys)):
            findings.add(f"{place.address}/{name}", "its rows are not in order", RESTORE)
        last = keys[-1] if keys else None


def _part(data: bytes) -> BasePart:
    return msgspec.msgpack.decode(data, type=BasePart)


def _fetched(
    place: Place, names: Iterable[str], findings: Findings, missing: set[str] | None = None
) -> Iterable[tuple[str, bytes]]:
    """Yields the objects whose checksum is right, and reports the damaged ones."""

    def fetch(name: str) -> bytes | PlaceError | None:
        try:
            return persistent(lambda: read(place, name), PATIENCE)
        except PlaceDamaged as error:
            return error

    names = [*names]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for name, data in zip(names, pool.map(fetch, names), strict=True):
            if isinstance(data, PlaceError):
                wrong = str(data).removeprefix(f"{place.address}/{name}: ").partition("; ")[0]
                findings.add(f"{place.address}/{name}", wrong, RESTORE)
            elif data is not None:
                findings.looked["bytes in the place"] += len(data)
                yield name, data
            elif missing is not None:
                missing.add(name)


def _decoded(place: Place, name: str, findings: Findings, decode: Callable[[], T]) -> T | None:
    try:
        return decode()
    except (MillstreamError, msgspec.MsgspecError, ValueError) as error:
        findings.add(f"{place.address}/{name}", f"has invalid content: {error}", RESTORE)
        return None
