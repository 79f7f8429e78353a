"""Loads an application by its name on the command line: a TOML file, a Python file or a module."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from millstream.app_file.app_file import read_app
from millstream.errors import DefinitionError
from millstream.model.app import AppDefinition
from millstream.model.place import shown_path
from millstream.modules import import_file, import_name
from millstream.nearest import did_you_mean


@dataclass(frozen=True, slots=True)
class Target:
    """The target of a command: the application and, from a TOML file, its settings."""

    app: AppDefinition
    toml: dict[str, Any] = field(default_factory=dict)


def load(target: str) -> Target:
    """Loads the application that `app.toml`, `app.py[:name]` or `module[:name]` names."""
    place, name = split_target(target)
    if place.endswith(".toml"):
        if name:
            raise DefinitionError(f"{target}: a TOML file holds one application; leave out :{name}")
        return Target(*read_app(_file(place)))
    is_package = (Path(place) / "__init__.py").is_file()
    if place.endswith(".py") or os.sep in place or (Path(place).is_dir() and not is_package):
        module = import_file(_file(place))
    else:
        try:
            module = import_name(place, Path.cwd())
        except DefinitionError as error:
            if error.__cause__ is None:  # the module does not exist; it did not fail itself
                hint = "name a file (app.py, app.toml) or a module"
                raise DefinitionError(f"{error}; {hint}") from None
            raise
    return Target(app_in(vars(module), place, name))


def split_target(target: str) -> tuple[str, str]:
    """Splits a target into its place and the name of the App there, which may be empty.

    >>> split_target("app.py:shop"), split_target("app.toml")
    (('app.py', 'shop'), ('app.toml', ''))
    """
    place, colon, name = target.rpartition(":")
    return (place, name) if colon and place and name.isidentifier() else (target, "")


def _file(place: str) -> Path:
    path = Path(place)
    if path.is_file():
        return path
    if path.is_dir():
        files = [p.name for p in sorted(path.iterdir()) if p.suffix in (".py", ".toml")]
        raise DefinitionError(
            f"{place} is a directory; name the application's file in it "
            f"(it has {', '.join(files) or 'no .py or .toml'})"
        )
    beside = path.parent.iterdir() if path.parent.is_dir() else ()
    names = sorted(p.name for p in beside if p.suffix in (".py", ".toml"))
    raise DefinitionError(
        f"no file {place!r} (looked in {shown_path(path.parent)}); {did_you_mean(path.name, names)}"
    )


def app_in(names: dict[str, Any], place: str, name: str) -> AppDefinition:
    """Returns the App of that name, or the only one, among the names of a module."""
    apps = {key: value for key, value in names.items() if isinstance(value, AppDefinition)}
    if name:
        value = names.get(name)
        if isinstance(value, AppDefinition):
            return value
        problem = f": {name!r} is a {type(value).__name__}, not an App"
        if value is None:
            problem = f" has no App {name!r}"
        raise DefinitionError(f"{place}{problem}; {did_you_mean(name, apps)}")
    distinct = {id(app): key for key, app in reversed(apps.items())}
    if not distinct:
        raise DefinitionError(f"{place} has no App; make one with app = millstream.App('name')")
    if len(distinct) > 1:
        first = next(iter(apps))
        raise DefinitionError(
            f"{place} has several Apps: {', '.join(apps)}; name one, as in {place}:{first}"
        )
    return next(iter(apps.values()))
