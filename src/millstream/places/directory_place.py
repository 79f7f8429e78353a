"""A place in a directory that all hosts see: a network file system, or a disk of one machine.

An object is a file. It is written under a temporary name and synced. Then `create` links it to its
name, which fails if the name is taken; `put` renames it. Both are atomic on POSIX file systems and
on NFS.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from uuid import uuid4

from millstream.durable import sync, write_synced
from millstream.errors import PlaceError
from millstream.places.place import Listed

UNFINISHED = ".unfinished"
"""The folder of files that still have a temporary name."""


class DirectoryPlace:
    """Objects as files in a directory, which is created if it does not exist."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path).absolute()
        self.address = f"shared:{self._path}"

    def put(self, name: str, data: bytes) -> None:
        try:
            target = self._target(name)
            os.replace(self._written(data), target)
            sync(target.parent)
        except OSError as error:
            raise self._failed(name, "written", error) from None

    def create(self, name: str, data: bytes) -> bool:
        try:
            target = self._target(name)
            if target.exists():
                return False
            fresh = self._written(data)
            try:
                os.link(fresh, target)
            except FileExistsError:
                return False
            finally:
                os.unlink(fresh)
            sync(target.parent)
            return True
        except OSError as error:
            raise self._failed(name, "created", error) from None

    def get(self, name: str, start: int = 0, end: int | None = None) -> bytes | None:
        try:
            with open(self._path / name, "rb") as file:
                file.seek(start)
                return file.read() if end is None else file.read(max(0, end - start))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise self._failed(name, "read", error) from None

    def list(self, prefix: str, after: str = "") -> Iterator[Listed]:
        folder = self._path / prefix.rpartition("/")[0]
        try:
            names = sorted(name for name in self._names(folder) if name.startswith(prefix))
        except OSError as error:
            raise self._failed(prefix, "listed", error) from None
        for name in names:
            if name > after:
                try:
                    status = os.stat(self._path / name)
                except FileNotFoundError:
                    continue  # deleted meanwhile
                yield Listed(name, status.st_size, status.st_mtime)

    def delete(self, names: Iterable[str]) -> None:
        for name in names:
            try:
                (self._path / name).unlink(missing_ok=True)
            except NotADirectoryError:
                pass
            except OSError as error:
                raise self._failed(name, "deleted", error) from None

    def _names(self, folder: Path) -> Iterator[str]:
        for directory, folders, files in os.walk(folder):
            if UNFINISHED in folders:
                folders.remove(UNFINISHED)
            for file in files:
                yield os.path.relpath(os.path.join(directory, file), self._path)

    def _target(self, name: str) -> Path:
        """The path of an object; creates its folder and syncs it."""
        target = self._path / name
        missing: list[Path] = []
        folder = target.parent
        while not folder.is_dir():
            missing.append(folder)
            folder = folder.parent
        for folder in reversed(missing):
            folder.mkdir(exist_ok=True)
            sync(folder.parent)
        return target

    def _written(self, data: bytes) -> Path:
        """Writes and syncs a file with the data, under a temporary name."""
        folder = self._path / UNFINISHED
        folder.mkdir(parents=True, exist_ok=True)
        fresh = folder / uuid4().hex
        try:
            write_synced(fresh, data)
        except OSError:
            fresh.unlink(missing_ok=True)
            raise
        return fresh

    def _failed(self, name: str, done: str, error: OSError) -> PlaceError:
        return PlaceError(
            f"{self.address}/{name}: cannot be {done}: {error.strerror or error}; every host must "
            "see the directory, and may write there; make room if it is full"
        )
