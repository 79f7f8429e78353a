"""Finds and imports the user's modules; errors in them name the user's own line.

A file is imported under its stem and kept in `sys.modules`, and its directory goes first on
`sys.path`. So functions in it can be imported by name, as Spark's workers do, and a file loaded
twice is one module. An exception while the user's module is imported becomes a DefinitionError that
names the deepest line of the user's code.
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
"""Modules that `import_file` has loaded, by name: only these may be replaced by another file."""
_loading: list[str] = []
_importers: dict[Path, Callable[[str], ModuleType]] = {}
"""Importers set by `importing_from`, by directory."""


def being_loaded() -> str | None:
    """Returns the target that is being imported now, if any: nothing may run meanwhile."""
    return _loading[-1] if _loading else None


def import_file(path: Path) -> ModuleType:
    """Imports the module in a file, once, under the file's stem."""
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
    """Imports a module by its dotted name, searching `directory` first."""
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
                    raise  # the module exists, but not what it imports
    place = f"{shown_path(directory)} or on sys.path" if directory else "sys.path"
    raise DefinitionError(f"no module {name!r} in {place}")


def import_object(reference: str, directory: Path | None = None) -> Any:
    """Returns the object that `module:name` names; the name may be dotted."""
    module_name, colon, name = reference.partition(":")
    if not (module_name and colon and name):
        raise DefinitionError(f"must be 'module:name'; got {reference!r}")
    value: Any = import_name(module_name, directory)
    at = f"module {module_name!r} ({shown_path(getattr(value, '__file__', None) or '?')})"
    for step in name.split("."):
        if not hasattr(value, step):
            public = [known for known in vars(value) if not known.startswith("_")]
            raise DefinitionError(f"{at} has no {step!r}; {did_you_mean(step, public)}")
        value = getattr(value, step)
    return value


def on_path(directory: Path) -> None:
    """Puts a directory first on sys.path, unless an importer is set for it."""
    if directory.resolve() in _importers:
        return
    text = str(directory.resolve())
    if text in sys.path:
        sys.path.remove(text)
    sys.path.insert(0, text)
    importlib.invalidate_caches()


def off_path(directory: Path) -> None:
    """Removes a directory from sys.path, however it is written there."""
    known = directory.resolve()
    sys.path[:] = [entry for entry in sys.path if Path(entry).resolve() != known]
    importlib.invalidate_caches()


@contextmanager
def importing_from(directory: Path, importer: Callable[[str], ModuleType]) -> Iterator[None]:
    """Lets `importer` import the modules of a directory, and keeps the directory off sys.path."""
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
            return importlib.import_module(name)  # an installed module


def user_files() -> set[Path]:
    """Returns the files of the user's own modules: neither installed ones nor Python's."""
    return {path for module in _user_modules() if (path := _file_of(module)) is not None}


def forget_user_modules() -> None:
    """Forgets the user's modules, so that the next `load` imports them again."""
    for module in _user_modules():
        sys.modules.pop(module.__name__, None)
        _loaded.pop(module.__name__, None)
    importlib.invalidate_caches()


def _user_modules() -> list[ModuleType]:
    python = [Path(prefix).resolve() for prefix in {sys.prefix, sys.base_prefix}]
    modules = []
    for name, module in list(sys.modules.items()):
        path = _file_of(module)
        ours = name.split(".")[0] in ("millstream", "__main__", "__mp_main__")
        if path is None or ours or any(path.is_relative_to(prefix) for prefix in python):
            continue
        if not {"site-packages", "dist-packages"} & set(path.parts):
            modules.append(module)
    return modules


def _file_of(module: ModuleType) -> Path | None:
    file = getattr(module, "__file__", None)
    return Path(file).resolve() if file else None


@contextmanager
def blaming_the_user(target: str) -> Iterator[None]:
    """Turns any exception of an import into one error at the user's line."""
    _loading.append(target)
    try:
        yield
    except (Exception, SystemExit) as error:
        if isinstance(error, DefinitionError) and error.__cause__ is not None:
            raise  # it already names the line, in a module that the user's module loads
        raise DefinitionError(_blame(error, target)) from error
    finally:
        _loading.pop()


def _blame(error: BaseException, target: str) -> str:
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        return f"{shown_path(error.filename)}:{error.lineno}: {type(error).__name__}: {error.msg}"
    frame = user_frame(error)
    place = target if frame is None else f"{shown_path(frame.filename)}:{frame.lineno}"
    if isinstance(error, MillstreamError):
        return f"{place}: {str(error).replace(f' ({place})', '', 1)}"  # name the place only once
    reason = "the module exits" if isinstance(error, SystemExit) else type(error).__name__
    return f"{place}: {reason}: {error}"
