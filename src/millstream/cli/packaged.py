"""A run that is given a package: is it of this application, and how its agents come to it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from millstream.errors import PackageError
from millstream.model.place import shown_path

if TYPE_CHECKING:
    from millstream.description import Description
    from millstream.packages.package import Package


def check_current(target: str, path: Path) -> None:
    """PackageError if the application's files have changed since it was packed: the root and its
    agents must run the same code."""
    from millstream.packages.collecting import reached_files
    from millstream.packages.package import packaged

    _, package = _read(path)
    now = {file.path: file for file in packaged(reached_files(target))}
    then = {file.path: file for file in package.manifest.files}
    changed = [name for name in now if then.get(name) != now[name]]
    if changed:
        raise PackageError(
            f"--package {shown_path(path)}: must have the code that is run here; got another "
            f"{', '.join(changed)}; pack it again: millstream pack {target}"
        )


def with_package(description: Description, path: Path, store: Path) -> Description:
    """Leave the package in the store, and its hash with the Python jobs that it has."""
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
    put_package(store, data)
    return msgspec.structs.replace(description, parts=parts)


def _read(path: Path) -> tuple[bytes, Package]:
    from millstream.packages.package import read_package

    try:
        data = path.read_bytes()
    except OSError as error:
        raise PackageError(
            f"--package {shown_path(path)}: must be a file that `millstream pack` made; it cannot "
            f"be read: {error.strerror or error}"
        ) from None
    return data, read_package(data)
