"""Turns what a root publishes into a job that runs on a node.

A job that is data is used directly. For a Python job, the package is fetched, and runs only if the
operator of the node has allowed it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from millstream.errors import PackageError
from millstream.packages.keys import Allowed
from millstream.packages.manifest import digest
from millstream.packages.package import open_package
from millstream.packages.package_loader import load_package
from millstream.windows.definition import PublishedJob
from millstream.windows.definition_reader import placed_of
from millstream.windows.placed import PlacedJob


def job_on_node(
    published: PublishedJob,
    name: str,
    *,
    allowed: Allowed,
    fetch: Callable[[str], bytes],
    folder: Path,
) -> PlacedJob:
    """Returns the job `name` as its root publishes it.

    `fetch` gets the bytes of a package by its hash; `folder` is where packages are unpacked. Raises
    PackageError if the package is not allowed here or is not the requested one, DefinitionError if
    its code fails, and InputError if the definition has an unknown version.
    """
    if published.definition is not None:
        return placed_of(published.definition)
    if published.package is None:
        raise PackageError(
            f"job {name!r}: must be published with its definition or with a package; got neither; "
            "run the root with --package FILE, or start the agent with the application's file"
        )
    data = fetch(published.package)
    if digest(data) != published.package:
        raise PackageError(
            f"job {name!r}: its package must have the hash {published.package}; got "
            f"{len(data)} bytes with {digest(data)}; the root's store may be damaged: start it "
            "again with --package FILE"
        )
    placed = load_package(open_package(data, allowed), folder).parts.get(name)
    if not isinstance(placed, PlacedJob) or placed.logs is None:
        raise PackageError(
            f"job {name!r}: its package must have a job of that name with logs=; got none; pack "
            "the application again, and start the root with it"
        )
    return placed
