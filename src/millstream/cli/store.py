"""Which store a reading command means: `--store DIR`, the one of `--app APP`, or the only one."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from millstream.errors import CommandError, StoreError

Command = TypeVar("Command", bound=Callable[..., Any])


def store_options(command: Command) -> Command:
    """Add `--store` and `--app` to a command."""
    store = click.option(
        "--store",
        type=click.Path(path_type=Path),
        help="The store's directory (default: the only one under ./.millstream).",
    )
    app = click.option("--app", metavar="APP", help="The application whose store it is.")
    return store(app(command))


def chosen_store(store: Path | None, app: str | None) -> Path:
    """The store that the options name; it must be there."""
    if store is not None and app is not None:
        raise CommandError("name the store with --store or with --app, not with both")
    if app is not None:
        from millstream.config import load
        from millstream.settings import store_of

        target = load(app)
        store = store_of(target.app, target.toml, os.environ)
    elif store is None and os.environ.get("MILLSTREAM_STORE"):
        store = Path(os.environ["MILLSTREAM_STORE"])
    if store is None:
        return _only_store(Path(".millstream"))
    if not store.is_dir():
        raise StoreError(f"no store at {store}; run the application first, or name another --store")
    return store


def _only_store(parent: Path) -> Path:
    found = sorted(filter(_is_store, parent.iterdir())) if parent.is_dir() else []
    if not found:
        raise StoreError(
            f"no store under ./{parent}; run an application here, or name one with --store DIR"
        )
    if len(found) > 1:
        names = ", ".join(str(path) for path in found)
        raise CommandError(f"there are several stores; name one with --store: {names}")
    return found[0]


def _is_store(path: Path) -> bool:
    """Not so are the agents' folders; and one that lost its facts is, for `verify` to say so."""
    return any((path / name).exists() for name in ("store.json", "lock"))
