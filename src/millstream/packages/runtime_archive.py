"""Packs everything that a bare Python needs to run the tasks of an application into one zip.

The zip contains the application's own modules, Millstream, and the libraries that either imports,
as installed here. It does not contain Spark, which executors have. Executors need a Python of the
same minor version for the same kind of machine, and nothing else.

`runtime.json` in it says what it was made for. The name of an archive that a run makes for itself
is derived from that and from the names, sizes and times of its files, so the next run finds it.
"""

from __future__ import annotations

import os
import re
import sys
import sysconfig
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from importlib import metadata
from pathlib import Path
from uuid import uuid4

import msgspec

from millstream.errors import DefinitionError
from millstream.packages.app_files import FOREIGN, imported_modules, located, reached

LIBRARIES = (
    *("lmdb", "msgspec", "numpy", "pyarrow", "datasketches", "obstore"),
    *("confluent-kafka", "psycopg", "psycopg-binary", "cassandra-driver"),
)
"""The libraries that Millstream's tasks import. One that is not installed belongs to an extra that
is not used."""
SPARKS = frozenset({"pyspark", "py4j", "millstream"})
"""Distributions that are left out: executors have Spark, and Millstream is added separately."""
DESCRIPTION = "runtime.json"
_LEFT_OUT = {"tests", "include", "__pycache__"}
_UNUSED = {".pyc", ".pxd", ".pyx", ".pyi", ".h", ".hpp", ".c", ".cc", ".cpp", ".a", ".lib"}
_REQUIREMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


class Runtime(msgspec.Struct, frozen=True):
    """The environment that an archive was made for."""

    millstream: str
    python: str
    platform: str
    libraries: dict[str, str]
    """The version of each library."""


@dataclass(frozen=True, slots=True)
class RuntimeFiles:
    """The files for an archive."""

    runtime: Runtime
    files: dict[str, Path]
    """Paths by the name in the archive."""

    @property
    def stamp(self) -> str:
        """A name that changes when a file does."""
        hashed = sha256(msgspec.msgpack.encode(self.runtime, order="deterministic"))
        for name, path in sorted(self.files.items()):
            status = path.stat()
            hashed.update(f"{name}\0{status.st_size}\0{status.st_mtime_ns}\n".encode())
        return hashed.hexdigest()[:16]


def here() -> tuple[str, str]:
    """Returns the Python's minor version and the kind of machine, as archives name them."""
    return f"{sys.version_info.major}.{sys.version_info.minor}", sysconfig.get_platform()


def runtime_files(target: str | None, version: str, include: Iterable[Path] = ()) -> RuntimeFiles:
    """Collects the files for the application that `target` names on a command line; None is for no
    application. `version` is Millstream's; `include` are further files of the application."""
    files = dict(_millstreams_own())
    names = {*LIBRARIES}
    if target is not None:
        root, file = located(target)
        own = reached(root, file, include)
        files.update((path, root / path) for path in sorted(own))
        names |= _distributions(imported_modules(root, own))
    libraries = _with_requirements(names)
    for library, distribution in libraries.items():
        files.update(_files_of(library, distribution, trimmed=library in LIBRARIES))
    versions = {name: installed.version for name, installed in sorted(libraries.items())}
    python, platform = here()
    return RuntimeFiles(Runtime(version, python, platform, versions), files)


def write_runtime(path: Path, contents: RuntimeFiles) -> None:
    """Writes an archive, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    hidden = path.with_name(f".{uuid4().hex}")
    try:
        with zipfile.ZipFile(hidden, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            archive.writestr(DESCRIPTION, msgspec.json.encode(contents.runtime))
            for name, file in sorted(contents.files.items()):
                archive.write(file, name)
        os.replace(hidden, path)
    finally:
        hidden.unlink(missing_ok=True)


def kept_runtime(folder: Path, contents: RuntimeFiles) -> Path:
    """Returns the archive of these files in a folder. Creates it if it is missing, and deletes
    older ones."""
    path = folder / f"{contents.stamp}.zip"
    if not path.exists():
        write_runtime(path, contents)
        for other in folder.glob("*.zip"):
            if other != path:
                other.unlink(missing_ok=True)
    return path


def check_runtime(path: Path, version: str) -> None:
    """Refuses an archive that was made for a different Python or Millstream."""
    try:
        with zipfile.ZipFile(path) as archive:
            runtime = msgspec.json.decode(archive.read(DESCRIPTION), type=Runtime)
    except (OSError, KeyError, zipfile.BadZipFile, msgspec.DecodeError) as error:
        raise DefinitionError(
            f"runtime {path}: must be an archive that `millstream pack --runtime` made: {error}"
        ) from None
    if (runtime.millstream, runtime.python, runtime.platform) != (version, *here()):
        python, platform = here()
        raise DefinitionError(
            f"runtime {path}: was made for Millstream {runtime.millstream}, Python "
            f"{runtime.python} and {runtime.platform}; this is Millstream {version}, Python "
            f"{python} and {platform}: pack it again"
        )


def _millstreams_own() -> Iterator[tuple[str, Path]]:
    root = Path(__file__).parents[1]
    for file in root.rglob("*"):
        if file.is_file() and file.suffix != ".pyc":
            yield f"millstream/{file.relative_to(root).as_posix()}", file


def _distributions(modules: Iterable[str]) -> set[str]:
    """Returns the installed distributions that provide these modules."""
    known = metadata.packages_distributions()
    tops = {module.split(".")[0] for module in modules} - FOREIGN
    return {name for top in tops for name in known.get(top, ())} - SPARKS


def _with_requirements(names: Iterable[str]) -> dict[str, metadata.Distribution]:
    """Returns installed distributions by name, with those that they require."""
    distributions: dict[str, metadata.Distribution] = {}
    left = sorted(names)
    while left:
        name = re.sub(r"[-_.]+", "-", left.pop()).lower()
        if name in distributions or name in SPARKS:
            continue
        try:
            distributions[name] = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue  # an extra, or a requirement on another system
        for requirement in distributions[name].requires or ():
            text = _REQUIREMENT.match(requirement)
            if text is not None and "extra ==" not in requirement:
                left.append(text[0])
    return distributions


def _files_of(
    library: str, distribution: metadata.Distribution, *, trimmed: bool
) -> Iterator[tuple[str, Path]]:
    """Yields the files of a distribution; with `trimmed`, without tests and headers."""
    files = distribution.files
    if not files or any(file.suffix == ".pth" for file in files):
        raise DefinitionError(
            f"library {library}: must be installed as files to be packed; it is an editable "
            "install, or its list of files is missing: install it with pip"
        )
    for file in files:
        path = Path(str(distribution.locate_file(file)))
        unused = _LEFT_OUT & set(file.parts) or file.suffix in _UNUSED
        if ".." in file.parts or file.suffix == ".pyc" or (trimmed and unused):
            continue
        if path.is_file():
            yield file.as_posix(), path
