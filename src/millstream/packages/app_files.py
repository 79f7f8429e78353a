"""Collects the files of an application: its own file and the local modules that it imports.

Imports are found in the source, wherever they are, also inside functions. Imports whose module name
is computed at run time are not found; name such files with `include`. Installed libraries are not
collected: they must be on the nodes.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from millstream.config import load, split_target
from millstream.errors import CommandError, DefinitionError
from millstream.model.app import AppDefinition
from millstream.model.place import shown_path
from millstream.packages.manifest import PackageManifest
from millstream.packages.package import packaged
from millstream.windows.definition import python_in
from millstream.windows.placed import PlacedJob

_REFERENCE = re.compile(r"([A-Za-z_][\w.]*):[A-Za-z_][\w.]*")
FOREIGN = frozenset({*sys.stdlib_module_names, "millstream", "pyspark"})
"""Modules that never belong to the application, even if a file beside it has the same name."""


@dataclass(frozen=True, slots=True)
class Collected:
    """An application with its files, ready to be packed."""

    root: Path
    """The application's folder."""
    manifest: PackageManifest
    files: dict[str, bytes]


def collect(target: str, created_by: str, include: Iterable[Path] = ()) -> Collected:
    """Collects the application that `target` names on a command line, with its files.

    Raises DefinitionError if none of its jobs needs a package.
    """
    app = load(target).app
    jobs = _jobs(app)
    root, file = located(target)
    paths = reached(root, file, include)
    files = {path: (root / path).read_bytes() for path in sorted(paths)}
    manifest = PackageManifest(
        app=app.name,
        file=file,
        name=split_target(target)[1],
        jobs=jobs,
        created_by=created_by,
        files=packaged(files),
    )
    return Collected(root, manifest, files)


def files_now(target: str, packed: Iterable[str]) -> dict[str, bytes]:
    """Returns the current content of the application's file, of what it imports and of what was
    packed with it."""
    root, file = located(target)
    existing = (path for path in packed if (root / path).is_file())
    return {path: (root / path).read_bytes() for path in sorted({*reached(root, file), *existing})}


def located(target: str) -> tuple[Path, str]:
    """Returns the application's folder, and the path of its file relative to it."""
    place, _ = split_target(target)
    path = Path(place)
    if path.suffix in (".py", ".toml"):
        return path.resolve().parent, path.name
    root = Path.cwd()
    for file in _files_of(root, place, last=True):
        return root, file
    raise CommandError(
        f"{target}: a package is made of local files, and module {place!r} is not below "
        f"{shown_path(root)}; name the application's file"
    )


def _jobs(app: AppDefinition) -> tuple[str, ...]:
    jobs = [part for part in app.parts.values() if isinstance(part, PlacedJob) and part.logs]
    if not any(python_in(job) for job in jobs):
        reason = "its jobs are data, which agents get without one" if jobs else "it has none"
        raise DefinitionError(
            f"app {app.name!r}: a package must be for a job with logs= whose map, combine or ts is "
            f"Python; {reason}: no package is needed"
        )
    return tuple(sorted(job.name for job in jobs))


def reached(root: Path, file: str, include: Iterable[Path] = ()) -> set[str]:
    """Returns the files below `root` that a file imports, directly or not, and the included
    ones."""
    files, left = set[str](), [file]
    while left:
        current = left.pop()
        if current in files:
            continue
        files.add(current)
        modules = (
            _referred(root / current) if current.endswith(".toml") else _imported(root, current)
        )
        for name in modules:
            left.extend(_files_of(root, name))
    for path in include:
        files.update(_included(root, path))
    return files


def imported_modules(root: Path, files: Iterable[str]) -> set[str]:
    """Returns the dotted names that files below `root` import, or that a TOML file names."""
    modules = set[str]()
    for file in files:
        if file.endswith(".toml"):
            modules.update(_referred(root / file))
        elif file.endswith(".py"):
            modules.update(_imported(root, file))
    return modules


def _imported(root: Path, file: str) -> Iterator[str]:
    """Yields the dotted names that a source file imports."""
    source = (root / file).read_bytes()
    try:
        tree = ast.parse(source, filename=str(root / file))
    except (SyntaxError, ValueError) as error:
        raise DefinitionError(f"{shown_path(root / file)}: cannot be packed: {error}") from None
    package = file.split("/")[:-1]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parents = package[: len(package) - node.level + 1] if node.level else []
            steps = [*parents, *(node.module.split(".") if node.module else [])]
            yield ".".join(steps)
            yield from (".".join([*steps, alias.name]) for alias in node.names)


def _referred(path: Path) -> Iterator[str]:
    """Yields the modules that a TOML application names, as in `module:name`."""

    def texts(value: Any) -> Iterator[str]:
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict | list):
            for child in value.values() if isinstance(value, dict) else value:
                yield from texts(child)

    for text in texts(tomllib.loads(path.read_text("utf-8-sig"))):
        reference = _REFERENCE.fullmatch(text)
        if reference is not None:
            yield reference[1]


def _files_of(root: Path, name: str, *, last: bool = False) -> Iterator[str]:
    """Yields the files below `root` that run when a dotted name is imported; with `last`, only the
    last."""
    steps = name.split(".")
    if steps[0] in FOREIGN or not all(steps):
        return
    for depth in range(len(steps) if last else 1, len(steps) + 1):
        path = "/".join(steps[:depth])
        for file in (f"{path}/__init__.py", f"{path}.py"):
            if (root / file).is_file():
                yield file
                break


def _included(root: Path, path: Path) -> Iterator[str]:
    files = [child for child in path.rglob("*") if child.is_file()] if path.is_dir() else [path]
    for file in files:
        if "__pycache__" in file.parts:
            continue
        resolved = file.resolve()
        if not resolved.is_file() or not resolved.is_relative_to(root):
            raise CommandError(
                f"--include must name files below the application's folder, {shown_path(root)}; "
                f"got {shown_path(file)}"
            )
        yield resolved.relative_to(root).as_posix()
