"""The user's modules: found, imported, and blamed at the user's own line.

A file is imported under its stem, kept in `sys.modules`, and its directory goes first on
`sys.path`, so that functions in it are importable by name (Spark's workers do that) and a file
loaded twice is one module. An exception while the user's module is imported becomes a
DefinitionError that names the deepest line that the user wrote.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from millstream.errors import DefinitionError, MillstreamError
from millstream.model.place import shown_path, user_frame
from millstream.nearest import did_you_mean

_loaded: dict[str, Path] = {}
"""Modules that `import_file` made, by name: only these may be replaced by another file."""
_loading: list[str] = []
_importers: dict[Path, Callable[[str], ModuleType]] = {}
"""Directories whose modules somebody else imports, meanwhile."""


def being_loaded() -> str | None:
    """The target that is being imported right now: nothing may run meanwhile."""
    return _loading[-1] if _loading else None


def import_file(path: Path) -> ModuleType:
    """The module in a file, under the file's stem; imported once."""
    path, name = path.resolve(), path.stem
    known = sys.modules.get(name)
    if known is not None and _file_of(known) == path:
        return known
    shown = shown_path(path)
    if "." in name or name in sys.stdlib_module_names or name in ("millstream", "pyspark"):
        raise DefinitionError(
            f"{shown}: the file's name is its module's name, and {name!r} cannot be one "
            "(it has a dot, or hides a library of that name); rename the file"
        )
    if known is not None and name not in _loaded:
        raise DefinitionError(
            f"{shown}: another module {name!r} is already imported "
            f"from {_file_of(known) or 'nowhere'}; rename the file"
        )
    on_path(path.parent)
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise DefinitionError(f"{shown}: not a Python file; it must end in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    _loaded[name] = path
    try:
        with blaming_the_user(shown):
            spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name], _loaded[name]
        raise
    return module


def import_name(name: str, directory: Path | None = None) -> ModuleType:
    """A module by its dotted name, looked for in `directory` first."""
    importer = None if directory is None else _importers.get(directory.resolve())
    if importer is not None and all(name.split(".")):
        return _imported_by(importer, name)
    if directory is not None:
        beside = directory / f"{name}.py"
        if beside.is_file():
            return import_file(beside)
        on_path(directory)
    if all(name.split(".")):
        with blaming_the_user(name):
            try:
                return importlib.import_module(name)
            except ModuleNotFoundError as error:
                if error.name is None or not f"{name}.".startswith(f"{error.name}."):
                    raise  # the module is there, what it imports is not
    place = f"{shown_path(directory)} or on sys.path" if directory else "sys.path"
    raise DefinitionError(f"no module {name!r} in {place}")


def import_object(reference: str, directory: Path | None = None) -> Any:
    """What `module:name` names; the name may be dotted."""
    module_name, colon, name = reference.partition(":")
    if not (module_name and colon and name):
        raise DefinitionError(f"must be 'module:name'; got {reference!r}")
    found: Any = import_name(module_name, directory)
    at = f"module {module_name!r} ({shown_path(getattr(found, '__file__', None) or '?')})"
    for step in name.split("."):
        if not hasattr(found, step):
            public = [one for one in vars(found) if not one.startswith("_")]
            raise DefinitionError(f"{at} has no {step!r}; {did_you_mean(step, public)}")
        found = getattr(found, step)
    return found


def on_path(directory: Path) -> None:
    """Put a directory first on sys.path, unless its modules are imported otherwise."""
    if directory.resolve() in _importers:
        return
    text = str(directory.resolve())
    if text in sys.path:
        sys.path.remove(text)
    sys.path.insert(0, text)
    importlib.invalidate_caches()


def off_path(directory: Path) -> None:
    """Take a directory off sys.path, under whatever name it is there."""
    known = directory.resolve()
    sys.path[:] = [entry for entry in sys.path if Path(entry).resolve() != known]
    importlib.invalidate_caches()


@contextmanager
def importing_from(directory: Path, importer: Callable[[str], ModuleType]) -> Iterator[None]:
    """Let `importer` import the modules of a directory, and keep it off sys.path."""
    known = directory.resolve()
    _importers[known] = importer
    try:
        yield
    finally:
        del _importers[known]


def _imported_by(importer: Callable[[str], ModuleType], name: str) -> ModuleType:
    with blaming_the_user(name):
        try:
            return importer(name)
        except ModuleNotFoundError as error:
            if not (error.name or "").endswith(f".{name}"):
                raise
            return importlib.import_module(name)  # an installed one


def user_files() -> set[Path]:
    """The files of all modules that are the user's own: neither installed nor Python's."""
    return {path for module in _user_modules() if (path := _file_of(module)) is not None}


def forget_user_modules() -> None:
    """Let the user's modules be imported anew by the next `load`."""
    for module in _user_modules():
        sys.modules.pop(module.__name__, None)
        _loaded.pop(module.__name__, None)
    importlib.invalidate_caches()


def _user_modules() -> list[ModuleType]:
    python = [Path(prefix).resolve() for prefix in {sys.prefix, sys.base_prefix}]
    found = []
    for name, module in list(sys.modules.items()):
        path = _file_of(module)
        ours = name.split(".")[0] in ("millstream", "__main__", "__mp_main__")
        if path is None or ours or any(path.is_relative_to(prefix) for prefix in python):
            continue
        if not {"site-packages", "dist-packages"} & set(path.parts):
            found.append(module)
    return found


def _file_of(module: ModuleType) -> Path | None:
    file = getattr(module, "__file__", None)
    return Path(file).resolve() if file else None


@contextmanager
def blaming_the_user(target: str) -> Iterator[None]:
    """Turn whatever an import raises into one error at the user's line."""
    _loading.append(target)
    try:
        yield
    except (Exception, SystemExit) as error:
        if isinstance(error, DefinitionError) and error.__cause__ is not None:
            raise  # a module that the user's module loads has been blamed already
        raise DefinitionError(_blame(error, target)) from error
    finally:
        _loading.pop()


def _blame(error: BaseException, target: str) -> str:
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        return f"{shown_path(error.filename)}:{error.lineno}: {type(error).__name__}: {error.msg}"
    frame = user_frame(error)
    place = target if frame is None else f"{shown_path(frame.filename)}:{frame.lineno}"
    if isinstance(error, MillstreamError):
        return f"{place}: {str(error).replace(f' ({place})', '', 1)}"  # the place once
    what = "the module exits" if isinstance(error, SystemExit) else type(error).__name__
    return f"{place}: {what}: {error}"
