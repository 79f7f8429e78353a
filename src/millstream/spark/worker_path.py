"""Lets Spark's Python workers import the installed pyspark, not the archive that Spark sends them.

Spark puts three archives in front of a worker's path: `pyspark.zip`, `py4j-...-src.zip`, and the
jar of its core. Python keeps no compiled files for modules in an archive, so each process compiles
them again, and it reads the directories of the archives, 7,000 names, whenever its caches become
invalid. An installed pyspark of the same version has the same modules, compiled.
"""

from __future__ import annotations

import re
import sys
import zipfile
from collections.abc import Sequence
from importlib.machinery import PathFinder
from pathlib import Path

PYSPARK = "pyspark.zip"
PY4J = re.compile(r"py4j-(.+)-src\.zip")
CORE = re.compile(r"spark-core_.+\.jar")
VERSION = "version.py"


def without_archives(path: Sequence[str]) -> list[str]:
    """Returns a module path without Spark's archives if it then has the same pyspark and py4j.

    Otherwise returns the path as it is: executors on other hosts may have no pyspark installed, or
    that of another Spark.
    """
    archives = [entry for entry in path if _is_archive(Path(entry).name)]
    rest = [entry for entry in path if entry not in archives]
    pyspark = _installed("pyspark", rest)
    py4j = _installed("py4j", rest)
    if pyspark is None or py4j is None:
        return [*path]
    for archive in map(Path, archives):
        if archive.name == PYSPARK and not _same_pyspark(archive, pyspark):
            return [*path]
        named = PY4J.fullmatch(archive.name)
        if named is not None and f"'{named[1]}'" not in (py4j / VERSION).read_text():
            return [*path]
    return rest


def use_installed_pyspark() -> None:
    """Takes Spark's archives out of this process's path; to be called before pyspark is imported.

    A path that cannot be examined stays as it is.
    """
    try:
        path = without_archives(sys.path)
    except (OSError, KeyError, zipfile.BadZipFile):
        return
    for entry in {*sys.path} - {*path}:
        sys.path_importer_cache.pop(entry, None)
    sys.path[:] = path


def _is_archive(name: str) -> bool:
    return name == PYSPARK or bool(PY4J.fullmatch(name) or CORE.fullmatch(name))


def _installed(package: str, path: list[str]) -> Path | None:
    """Returns the folder of a package that is installed as files; None if there is none."""
    spec = PathFinder.find_spec(package, path)
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent
    return folder if (folder / VERSION).is_file() else None


def _same_pyspark(archive: Path, installed: Path) -> bool:
    """True if an archive is part of an installed pyspark, or has the same version."""
    if archive.parent == installed / "python" / "lib":
        return True
    with zipfile.ZipFile(archive) as packed:
        return packed.read(f"pyspark/{VERSION}") == (installed / VERSION).read_bytes()
