"""Finds the store that a reading command means: `--store DIR`, the one of `--app APP`, or the only
one.

A store may be in a place, such as `s3://BUCKET/PREFIX`. Then the command reads a mirror on this
host: that of a server that follows the store here, or else one that the command itself updates.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import click

from millstream.cli.option_groups import option_group
from millstream.errors import CommandError, StoreError
from millstream.notices import say
from millstream.places.place_address import is_place

store_options = option_group(
    click.option(
        "--store",
        metavar="DIR|ADDRESS",
        help="The store's directory (default: the only one under ./.millstream), or the address of "
        "a shared one: s3://BUCKET/PREFIX, gs://, az://, shared:DIR.",
    ),
    click.option("--app", metavar="APP", help="The application whose store it is."),
)
"""Adds `--store` and `--app` to a command."""


def named_store(store: str | None, app: str | None) -> Path | str:
    """Returns the store that the options name: a directory, which must exist, or the address of a
    place."""
    if store is not None and app is not None:
        raise CommandError("name the store with --store or with --app, not with both")
    named: Path | str | None = store
    if app is not None:
        from millstream.config import load
        from millstream.settings.settings import store_of

        target = load(app)
        named = store_of(target.app, target.toml, os.environ)
    elif store is None:
        named = os.environ.get("MILLSTREAM_STORE") or None
    if named is None:
        return _only_store(Path(".millstream"))
    if is_place(named):
        return str(named)
    if not Path(named).is_dir():
        raise StoreError(f"no store at {named}; run the application first, or name another --store")
    return Path(named)


@contextmanager
def chosen_store(
    store: str | None, app: str | None, logs: Sequence[str] | None = ()
) -> Iterator[Path]:
    """Opens the folder of the store that the options name. The mirror of a shared store has the
    event logs of the streams `logs`; with None all of them, and the lists of files."""
    named = named_store(store, app)
    if isinstance(named, Path):
        yield named
        return
    with mirrored(named, logs) as folder:
        yield folder


@contextmanager
def mirrored(address: str, logs: Sequence[str] | None = ()) -> Iterator[Path]:
    """Opens a mirror of a shared store on this host, as of its last commit, with these logs; with
    None, it has everything that a store has."""
    from millstream.backups.mirror_extras import after_commit, before_commit, bring_readers
    from millstream.log.logs_follower import bring_logs
    from millstream.places.place import folders_in
    from millstream.places.place_address import place_at
    from millstream.sources.record_log import fetch_lists
    from millstream.stores.shared.mirror_folder import followed_here, mirror_folder
    from millstream.stores.shared.store_mirror import StoreMirror

    here = followed_here(address) if logs is not None else None
    if here is not None:
        yield here
        return
    with mirror_folder(address) as folder:
        if not any(folder.glob("shards-*")):
            say(f"reading {address} ...")
        place = place_at(address)
        if logs is None:
            before_commit(place, folder)
        with closing(StoreMirror(place, folder)) as mirror:
            if logs is None:
                after_commit(place, folder, mirror.state)
                fetch_lists(place, folder / "sources")
                streams = [*folders_in(place, "logs/")]
                bring_logs(place, folder / "logs", streams)
                bring_readers(place, folder / "logs", streams)
            else:
                bring_logs(place, folder / "logs", logs)
            yield folder


def _only_store(parent: Path) -> Path:
    stores = sorted(filter(_is_store, parent.iterdir())) if parent.is_dir() else []
    if not stores:
        raise StoreError(
            f"no store under ./{parent}; run an application here, or name one with --store DIR"
        )
    if len(stores) > 1:
        names = ", ".join(str(path) for path in stores)
        raise CommandError(f"there are several stores; name one with --store: {names}")
    return stores[0]


def _is_store(path: Path) -> bool:
    """True if a folder is a store. Agents' folders are not; a store that lost its facts still is,
    so that `verify` can report it."""
    return any((path / name).exists() for name in ("store.json", "lock"))
