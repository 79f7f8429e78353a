"""Packages of code in a store, for agents that fetch them: STORE/packages/HASH.zip.

They are never replaced, since the name is the hash of the content, and none is removed: an agent
may still fetch the one before.
"""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

from millstream.durable import sync, write_whole

FOLDER = "packages"
_HEX = frozenset("0123456789abcdef")


def put_package(store: Path, data: bytes) -> str:
    """Leave a package in a store, on disk when this returns; its hash."""
    name = sha256(data).hexdigest()
    folder = store / FOLDER
    if not folder.is_dir():
        folder.mkdir()
        sync(store)
    path = folder / f"{name}.zip"
    if not path.is_file() or path.read_bytes() != data:
        write_whole(path, data)
    return name


def package_path(store: Path, name: str) -> Path | None:
    """Where the package with that hash lies; None if there is none. Any text may be asked for."""
    if len(name) != 64 or not _HEX.issuperset(name):
        return None
    path = store / FOLDER / f"{name}.zip"
    return path if path.is_file() else None
