"""Loads a checked package as an application, isolated from other loaded packages.

Its modules get unique names (`millstream_package_HASH.words`), and `import words` in them finds the
package's `words` before any other. So two packages, or two versions of one, never see each other's
modules, and a newer version never gets a module of an older one. Code comes from the verified
bytes. The unpacked files are only for tracebacks and for data files beside the code. So no cached
bytecode is read or written either.
"""

from __future__ import annotations

import builtins
import importlib
import importlib.util
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from importlib.abc import MetaPathFinder, SourceLoader
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

from millstream.app_file.app_file import read_app
from millstream.config import app_in
from millstream.errors import PackageError
from millstream.model.app import AppDefinition
from millstream.modules import blaming_the_user, importing_from
from millstream.packages.app_files import FOREIGN
from millstream.packages.package import Package


def load_package(package: Package, folder: Path) -> AppDefinition:
    """Returns the application of a package, which is unpacked into FOLDER/HASH.

    Raises DefinitionError, with the user's own line, if its code fails, and PackageError if it is
    not what the manifest says. Loading it again uses the modules that are already loaded.
    """
    manifest = package.manifest
    home = unpack(package, folder)
    finder = _finder(package, home)
    file = home / manifest.file
    try:
        if manifest.file.endswith(".toml"):
            with importing_from(home, finder.module):
                app = read_app(file)[0]
        else:
            with blaming_the_user(manifest.file):
                module = finder.module(manifest.file.removesuffix(".py").replace("/", "."))
            app = app_in(vars(module), manifest.file, manifest.name)
        _check(app, package)
    except BaseException:
        unload_package(package.sha256)
        raise
    return app


def unload_package(sha256: str) -> None:
    """Unloads the modules of a package. Functions of it that are still referenced continue to
    work."""
    prefix = _prefix(sha256)
    sys.meta_path[:] = [
        finder
        for finder in sys.meta_path
        if not (isinstance(finder, _Finder) and finder.prefix == prefix)
    ]
    for name in [name for name in sys.modules if f"{name}.".startswith(f"{prefix}.")]:
        del sys.modules[name]


def unpack(package: Package, folder: Path) -> Path:
    """Writes the files of a package to FOLDER/HASH. A folder with exactly these files is kept."""
    home = folder / package.sha256
    if _is_there(package.files, home):
        return home
    fresh = folder / f".{package.sha256}.{os.getpid()}"
    shutil.rmtree(fresh, ignore_errors=True)
    try:
        for path, data in package.files.items():
            file = fresh / path
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            file.write_bytes(data)
        shutil.rmtree(home, ignore_errors=True)
        fresh.replace(home)
    except OSError as error:
        shutil.rmtree(fresh, ignore_errors=True)
        raise PackageError(
            f"package: must be unpacked into {home}, but cannot be: {error.strerror or error}; "
            "make room, or give the right to write there"
        ) from error
    return home


def _is_there(files: Mapping[str, bytes], home: Path) -> bool:
    existing = {
        path.relative_to(home).as_posix(): path
        for path in home.rglob("*")
        if path.is_symlink() or not path.is_dir()
    }
    return existing.keys() == files.keys() and all(
        not path.is_symlink() and path.read_bytes() == files[name]
        for name, path in existing.items()
    )


def _check(app: AppDefinition, package: Package) -> None:
    manifest = package.manifest
    missing = [job for job in manifest.jobs if job not in app.parts]
    if app.name != manifest.app or missing:
        raise PackageError(
            f"package: must hold app {manifest.app!r} with the jobs {', '.join(manifest.jobs)}; "
            f"got app {app.name!r} with {', '.join(app.parts) or 'none'}; pack it again"
        )


def _prefix(sha256: str) -> str:
    return f"millstream_package_{sha256}"


def _finder(package: Package, home: Path) -> _Finder:
    for known in sys.meta_path:
        if isinstance(known, _Finder) and known.prefix == _prefix(package.sha256):
            return known
    finder = _Finder(package, home)
    root = ModuleType(finder.prefix)
    root.__path__ = [str(home)]
    sys.modules[finder.prefix] = root
    sys.meta_path.insert(0, finder)
    return finder


class _Finder(MetaPathFinder):
    """Finds the modules of one package."""

    def __init__(self, package: Package, home: Path) -> None:
        self.prefix = _prefix(package.sha256)
        self.home = home
        self.files = package.files
        own = {path.split("/")[0].removesuffix(".py") for path in package.files}
        self._own = own - FOREIGN
        self._builtins = {**vars(builtins), "__import__": self._import}

    def module(self, name: str) -> ModuleType:
        """Returns a module of the package by the name that its own code uses."""
        return importlib.import_module(f"{self.prefix}.{name}")

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not fullname.startswith(f"{self.prefix}."):
            return None
        place = fullname.removeprefix(f"{self.prefix}.").replace(".", "/")
        for file, folder in ((f"{place}/__init__.py", True), (f"{place}.py", False)):
            if file in self.files:
                return importlib.util.spec_from_file_location(
                    fullname,
                    self.home / file,
                    loader=_Loader(self.home / file, self.files[file], self._builtins),
                    submodule_search_locations=[str(self.home / place)] if folder else None,
                )
        if any(file.startswith(f"{place}/") for file in self.files):
            spec = ModuleSpec(fullname, None, is_package=True)
            spec.submodule_search_locations = [str(self.home / place)]
            return spec
        return None

    def _import(
        self,
        name: str,
        globals: Mapping[str, object] | None = None,
        locals: Mapping[str, object] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        """`__import__` for the package's code: its own modules come first."""
        top = name.partition(".")[0]
        if level or top not in self._own:
            return builtins.__import__(name, globals, locals, fromlist or (), level)
        module = self.module(name)
        if not fromlist:
            return sys.modules[f"{self.prefix}.{top}"]
        return builtins.__import__(module.__name__, globals, locals, fromlist, 0)


class _Loader(SourceLoader):
    """Runs one file of a package, from the verified bytes."""

    def __init__(self, path: Path, data: bytes, builtins_: dict[str, Any]) -> None:
        self._path = str(path)
        self._data = data
        self._builtins = builtins_

    def get_filename(self, fullname: str) -> str:
        return self._path

    def get_data(self, path: str | bytes | os.PathLike[str]) -> bytes:
        if str(path) == self._path:
            return self._data
        raise OSError(f"{path!r} is not the file of this module")

    def exec_module(self, module: ModuleType) -> None:
        vars(module)["__builtins__"] = self._builtins
        super().exec_module(module)
