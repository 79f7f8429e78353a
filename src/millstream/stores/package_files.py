"""Packages of code in a store, for agents that fetch them: STORE/packages/HASH.zip.

A package is never replaced, since its name is the hash of its content, and never removed: an agent
may still fetch an older one. Packages of a shared store are in its place, and in the folders of the
hosts that have asked for them.
"""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

from millstream.durable import sync, write_whole
from millstream.places.place import Place, persistent, read, sealed

PATIENCE = 60.0
FOLDER = "packages"
_HEX = frozenset("0123456789abcdef")


def put_package(store: Path, data: bytes, place: Place | None = None) -> str:
    """Puts a package into a store, durably, and into its place if it has one; returns its hash."""
    name = sha256(data).hexdigest()
    if place is not None:
        where = f"{FOLDER}/{name}.zip"
        persistent(lambda: place.put(where, sealed(where, data)), PATIENCE)
    folder = store / FOLDER
    if not folder.is_dir():
        folder.mkdir()
        sync(store)
    path = folder / f"{name}.zip"
    if not path.is_file() or path.read_bytes() != data:
        write_whole(path, data)
    return name


def package_path(store: Path, name: str, place: Place | None = None) -> Path | None:
    """The path of the package with that hash; None if there is none. `name` may be any text.

    A package that only the `place` has is fetched first.
    """
    if len(name) != 64 or not _HEX.issuperset(name):
        return None
    path = store / FOLDER / f"{name}.zip"
    if place is not None and not path.is_file():
        data = read(place, f"{FOLDER}/{name}.zip")
        if data is not None:
            put_package(store, data)
    return path if path.is_file() else None
