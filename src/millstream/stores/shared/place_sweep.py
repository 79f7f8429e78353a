"""Sweeps a place: deletes objects that no commit names.

Tasks and drivers that die, or lose against others, leave objects that no commit will ever name. A
running driver deletes the objects that it has replaced itself; this deletes the rest.

An object that was just written may be named by the next commit. So only objects older than a given
age are deleted, by the clock of the place itself. And a reader may have started from commits of a
while ago. So all commits younger than that age count, and those before them back to a manifest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from uuid import uuid4

from millstream.errors import StoreError
from millstream.places.place import Listed, Place, persistent, sealed
from millstream.stores.progress import decoded
from millstream.stores.shared.commit_log import CommitLog
from millstream.stores.shared.commit_record import COMMITS, CommitRecord, batch_in
from millstream.stores.shared.leader_beat import last_beat
from millstream.stores.shared.manifest import BaseRef, part_names
from millstream.stores.shared.staged_objects import staged_name

SWEPT = ("changes/", "packs/", "bases/", "staged/")
"""Prefixes of objects that count only if a commit names them."""
LEAST_SECONDS = 600.0
"""The least age while a driver may run: it may still name objects that it has written."""
HOUR = 3_600.0
CLOCK = "records/clock-"
AT_ONCE = 16
PATIENCE = 60.0
TOGETHER = 100


@dataclass(slots=True)
class Swept:
    """The objects that were deleted, or with `dry_run` would be."""

    names: list[str] = field(default_factory=list)
    bytes: int = 0
    kept: int = 0
    """The number of objects that stay."""

    def by_kind(self) -> dict[str, int]:
        """The number of objects of each kind."""
        counts: dict[str, int] = {}
        for name in self.names:
            kind = name.partition("/")[0]
            counts[kind] = counts.get(kind, 0) + 1
        return counts


def sweep(
    place: Place,
    older_than: float = HOUR,
    *,
    dry_run: bool = False,
    say: Callable[[str], None] = lambda _: None,
) -> Swept:
    """Delete old commits, and objects older than `older_than` seconds that no commit names."""
    check_age(place, older_than)
    before = place_time(place) - older_than
    say("listing")
    commits = persistent(lambda: [*place.list(COMMITS)], PATIENCE)
    if not commits:
        raise StoreError(f"{place.address}: no store is there; name another with --store")
    # Listed before the commits are read: an object that is named meanwhile is younger than the age.
    objects = [
        listed
        for prefix in SWEPT
        for listed in persistent(lambda prefix=prefix: [*place.list(prefix)], PATIENCE)  # type: ignore[misc]
    ]
    records = _read_all(place, commits)
    first = first_needed(commits, records, before)
    say("comparing")
    named = named_by(commit for commit in records if commit.batch >= first)
    gone = [listed for listed in objects if listed.modified < before and listed.name not in named]
    gone += [listed for listed in commits if batch_in(listed.name) < first]
    swept = Swept(
        [listed.name for listed in gone],
        sum(listed.size for listed in gone),
        len(objects) + len(commits) - len(gone),
    )
    if not dry_run:
        for at in range(0, len(gone), TOGETHER):
            say(f"deleting, {at:,} of {len(gone):,}")
            names = swept.names[at : at + TOGETHER]
            persistent(lambda names=names: place.delete(names), PATIENCE)  # type: ignore[misc]
    return swept


def check_age(place: Place, older_than: float) -> None:
    """Refuse an age at which a running driver may still need the objects."""
    beat = persistent(lambda: last_beat(place), PATIENCE)
    if older_than < LEAST_SECONDS and beat is not None and not beat.ended:
        raise StoreError(
            f"{place.address}: a driver on {beat.host} runs, or ended without saying so; then only "
            f"what is older than {LEAST_SECONDS:g} seconds may be deleted, got {older_than:g}: "
            "stop it, or leave --older-than out"
        )


def place_time(place: Place) -> float:
    """The time by the clock of the place, in seconds since the epoch."""
    name = f"{CLOCK}{uuid4().hex}"
    persistent(lambda: place.put(name, sealed(name, b"")), PATIENCE)
    try:
        listed = persistent(lambda: [*place.list(name)], PATIENCE)
    finally:
        place.delete([name])
    return listed[0].modified


def first_needed(commits: list[Listed], records: list[CommitRecord], before: float) -> int:
    """The first commit that must stay: the last one with a manifest written before `before`.

    A reader that started since then has started from that commit, or from a later one.
    """
    # The newest records may be missing here: they came after the listing.
    written = {batch_in(listed.name): listed.modified for listed in commits}
    whole = [commit.batch for commit in records if commit.manifest is not None]
    old = [batch for batch in whole if written.get(batch, before) < before]
    return max(old, default=min(whole, default=0))


def named_by(commits: Iterable[CommitRecord]) -> set[str]:
    """The names of all objects that commits and their manifests name."""
    named: set[str] = set()

    def add_bases(bases: Iterable[BaseRef]) -> None:
        for base in bases:
            named.update(part_names(base))

    for commit in commits:
        named.update(ref.name for ref in commit.changes)
        named.update(ref.name for ref in commit.packs)
        add_bases(commit.bases)
        if commit.manifest is not None:
            named.update(segment.name for segment in commit.manifest.segments)
            add_bases(commit.manifest.bases.values())
        progress = decoded(commit.progress)
        staged = [*progress.staged, *(name for _, names in progress.unpublished for name in names)]
        named.update(map(staged_name, staged))
    return named


def _read_all(place: Place, commits: list[Listed]) -> list[CommitRecord]:
    """Reads the commits that still exist, and those that came meanwhile."""
    log = CommitLog(place, PATIENCE)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        batches = [batch_in(listed.name) for listed in commits]
        records = [commit for commit in pool.map(log.read, batches) if commit is not None]
    while (commit_after := log.read(records[-1].batch + 1)) is not None:
        records.append(commit_after)
    return records
