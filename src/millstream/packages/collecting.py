"""The files of an application: its own, and the modules beside it that it imports.

Imports are found in the source, wherever they stand, also inside functions; what a module's name is
made of at run time is not seen, and such files are named with `include`. Installed libraries are
not collected: they must be on the nodes.
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
from millstream.model.app import App
from millstream.model.place import shown_path
from millstream.packages.manifest import Manifest
from millstream.packages.package import packaged
from millstream.windows.definition import python_in
from millstream.windows.placed import PlacedJob

_REFERENCE = re.compile(r"([A-Za-z_][\w.]*):[A-Za-z_][\w.]*")
FOREIGN = frozenset({*sys.stdlib_module_names, "millstream", "pyspark"})
"""Modules that are never the application's own, even if a file beside it has such a name."""


@dataclass(frozen=True, slots=True)
class Collected:
    """What is to be packed."""

    root: Path
    """The application's folder."""
    manifest: Manifest
    files: dict[str, bytes]


def collect(target: str, created_by: str, include: Iterable[Path] = ()) -> Collected:
    """The application that `target` names on a command line, with its files.

    DefinitionError if none of its jobs needs a package.
    """
    app = load(target).app
    jobs = _jobs(app)
    root, file = _located(target)
    paths = _reached(root, file)
    for one in include:
        paths.update(_included(root, one))
    files = {one: (root / one).read_bytes() for one in sorted(paths)}
    manifest = Manifest(
        app=app.name,
        file=file,
        name=split_target(target)[1],
        jobs=jobs,
        created_by=created_by,
        files=packaged(files),
    )
    return Collected(root, manifest, files)


def files_now(target: str, packed: Iterable[str]) -> dict[str, bytes]:
    """The application's file, what it imports and what was packed with it, as they are now."""
    root, file = _located(target)
    there = (one for one in packed if (root / one).is_file())
    return {one: (root / one).read_bytes() for one in sorted({*_reached(root, file), *there})}


def _located(target: str) -> tuple[Path, str]:
    """The application's folder, and the path of its file from there."""
    place, _ = split_target(target)
    path = Path(place)
    if path.suffix in (".py", ".toml"):
        return path.resolve().parent, path.name
    root = Path.cwd()
    for file in _files_of(root, place, last=True):
        return root, file
    raise CommandError(
        f"{target}: a package is made of files here, and module {place!r} is not below "
        f"{shown_path(root)}; name the application's file"
    )


def _jobs(app: App) -> tuple[str, ...]:
    jobs = [one for one in app.parts.values() if isinstance(one, PlacedJob) and one.logs]
    if not any(python_in(job) for job in jobs):
        there = "its jobs are data, and reach agents as they are" if jobs else "it has none"
        raise DefinitionError(
            f"app {app.name!r}: a package must be for a job with logs= whose map, combine or ts is "
            f"Python; {there}: no package is needed"
        )
    return tuple(sorted(job.name for job in jobs))


def _reached(root: Path, file: str) -> set[str]:
    """The files below `root` that are imported from a file, directly or not."""
    reached, left = set[str](), [file]
    while left:
        one = left.pop()
        if one in reached:
            continue
        reached.add(one)
        named = _referred(root / one) if one.endswith(".toml") else _imported(root, one)
        for name in named:
            left.extend(_files_of(root, name))
    return reached


def _imported(root: Path, file: str) -> Iterator[str]:
    """The dotted names that a source file imports."""
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
            above = package[: len(package) - node.level + 1] if node.level else []
            steps = [*above, *(node.module.split(".") if node.module else [])]
            yield ".".join(steps)
            yield from (".".join([*steps, alias.name]) for alias in node.names)


def _referred(path: Path) -> Iterator[str]:
    """The modules that a TOML application names, as in `module:name`."""

    def texts(value: Any) -> Iterator[str]:
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict | list):
            for one in value.values() if isinstance(value, dict) else value:
                yield from texts(one)

    for text in texts(tomllib.loads(path.read_text("utf-8-sig"))):
        reference = _REFERENCE.fullmatch(text)
        if reference is not None:
            yield reference[1]


def _files_of(root: Path, name: str, *, last: bool = False) -> Iterator[str]:
    """The files below `root` that are run when a dotted name is imported; the last alone."""
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
    files = [one for one in path.rglob("*") if one.is_file()] if path.is_dir() else [path]
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
