"""Packages on the command line: for the agents of a run, and as the APP of an agent."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from millstream.errors import PackageError
from millstream.model.app import AppDefinition
from millstream.model.place import shown_path

if TYPE_CHECKING:
    from millstream.description import Description
    from millstream.packages.package import Package
    from millstream.places.place import Place


def application(target: str, allow: Sequence[str], folder: Path) -> AppDefinition:
    """Loads the application that `target` names. If it is a package, it is unpacked below `folder`,
    and none of its code runs before it is verified and known to be allowed."""
    from millstream.config import load
    from millstream.packages.keys import allowed_of

    allowed = allowed_of(allow)
    if not target.endswith(".zip"):
        return load(target).app
    from millstream.packages.package import open_package
    from millstream.packages.package_loader import load_package

    return load_package(open_package(_bytes(Path(target), target), allowed), folder)


def check_current(target: str, path: Path) -> None:
    """PackageError if the application's files have changed since it was packed: the root and its
    agents must run the same code."""
    from millstream.packages.app_files import files_now
    from millstream.packages.package import packaged

    _, package = _read(path)
    then = {file.path: file for file in package.manifest.files}
    now = {file.path: file for file in packaged(files_now(target, then))}
    changed = [name for name in {**then, **now} if then.get(name) != now.get(name)]
    if changed:
        raise PackageError(
            f"--package {shown_path(path)}: must have the code that is run here; got another "
            f"{', '.join(changed)}; pack it again: millstream pack {target}"
        )


def with_package(
    description: Description, path: Path, store: Path, place: Place | None = None
) -> Description:
    """Puts the package into the store, and its hash into the descriptions of its Python jobs."""
    import msgspec

    from millstream.stores.package_files import put_package
    from millstream.windows.definition import with_package

    data, package = _read(path)
    if package.manifest.app != description.app:
        raise PackageError(
            f"--package {shown_path(path)}: must be of app {description.app!r}; got one of "
            f"{package.manifest.app!r}; pack this application"
        )
    parts = with_package(description.parts, package.sha256, package.manifest.jobs)
    left = [
        name
        for name, part in parts.items()
        if part.get("kind") == "job" and part["agents"] and part["definition"] is None
    ]
    if left:
        raise PackageError(
            f"--package {shown_path(path)}: must have every Python job of the application; got "
            f"none for {', '.join(left)}; pack it again"
        )
    put_package(store, data, place)
    return msgspec.structs.replace(description, parts=parts)


def _read(path: Path) -> tuple[bytes, Package]:
    from millstream.packages.package import read_package

    data = _bytes(path, f"--package {shown_path(path)}")
    return data, read_package(data)


def _bytes(path: Path, where: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise PackageError(
            f"{where}: must be a file that `millstream pack` made; it cannot be read: "
            f"{error.strerror or error}"
        ) from None
