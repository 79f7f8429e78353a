"""Folders of this host for mirrors. One process writes to each, and holds its lock meanwhile."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from millstream.errors import StoreError, StoreLocked
from millstream.places.host_cache import working_folder
from millstream.stores.absent_shard import named_shards
from millstream.stores.shared.mirror_record import read_mirror

LOCK = "mirror.lock"
MOST = 100
"""The most mirrors of one store on one host."""
FRESH_SECONDS = 3.0
"""A mirror whose place has answered within these seconds counts as up to date."""


@contextmanager
def mirror_folder(
    address: str, cache: str = "", shards: Collection[int] | None = None
) -> Iterator[Path]:
    """Holds the first free folder for a mirror, so that data left by an earlier one is reused."""
    for number in range(MOST):
        folder = working_folder(address, f"{_prefix(shards)}{number}", cache)
        handle = _taken(folder)
        if handle is not None:
            try:
                yield folder
            finally:
                os.close(handle)
            return
    raise StoreLocked(f"{address}: this host has {MOST} mirrors of it already; stop one of them")


@contextmanager
def held_folder(folder: Path) -> Iterator[Path]:
    """Holds the given folder; StoreLocked if another process uses it."""
    handle = _taken(folder)
    if handle is None:
        raise StoreLocked(f"{folder}: another process writes to this mirror; stop it first")
    try:
        yield folder
    finally:
        os.close(handle)


def followed_here(address: str, cache: str = "") -> Path | None:
    """A mirror of all shards of a place that a process of this host keeps up to date now."""
    for folder in mirrors_of(address, cache):
        handle = _taken(folder)
        if handle is not None:
            os.close(handle)
            continue
        record = read_mirror(folder)
        if record is None or record.error or not (folder / "store.json").exists():
            continue
        if time.time() - record.asked / 1e6 < FRESH_SECONDS:
            return folder
    return None


def mirrors_of(address: str, cache: str = "") -> list[Path]:
    """The folders of this host that have, or had, a mirror of all shards of a place."""
    prefix = working_folder(address, _prefix(None), cache)
    return sorted(path for path in prefix.parent.glob(f"{prefix.name}*") if path.is_dir())


def _prefix(shards: Collection[int] | None) -> str:
    return "mirror-" if shards is None else f"shards-{named_shards(shards).replace(',', '_')}-"


def _taken(folder: Path) -> int | None:
    """Creates a folder and takes its lock; None if another process holds it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder / LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise StoreError(
            f"{folder}: a mirror cannot be made here: {error.strerror or error}; name a folder "
            "with room for it in MILLSTREAM_CACHE"
        ) from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        return None
    return handle
