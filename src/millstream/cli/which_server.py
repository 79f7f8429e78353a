"""Finds the server that a command talks to: `--url`, MILLSTREAM_URL, or the one that serves here.

A server writes its process and its address into its store's server.lock. So if only one application
runs here, commands need no address.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from millstream.cli.option_groups import Command, option_group
from millstream.errors import CommandError
from millstream.places.place_address import is_place
from millstream.server.lock import FILE, served_at
from millstream.server.options import PORT
from millstream.service.server_settings import token_of

if TYPE_CHECKING:
    from millstream.client import Client
    from millstream.client.wire import Wire

DEFAULT_URL = f"http://127.0.0.1:{PORT}"


def _server_options(where: str) -> Callable[[Command], Command]:
    return option_group(
        click.option("--url", metavar="URL", help=where),
        click.option(
            "--token-file",
            type=click.Path(path_type=Path),
            help="A file with the server's token.  [default: MILLSTREAM_TOKEN]",
        ),
    )


url_options = _server_options(
    "The server, or several, separated by commas.  [default: MILLSTREAM_URL, the one that "
    f"serves here, or {DEFAULT_URL}]"
)
"""Adds `--url` and `--token-file` to a command that talks to a server."""
url_instead_options = _server_options("Ask this server instead of reading a store.")
"""Adds the same to a command that reads a store, unless `--url` names a server."""


def asks_server(
    url: str | None, store: str | None, app: str | None, token_file: Path | None = None
) -> bool:
    """True if `--url` names a server to ask, False to read a store; CommandError if the options
    contradict each other."""
    if url is not None and (store is not None or app is not None):
        raise CommandError("name a server with --url, or a store with --store or --app, not both")
    if url is None and token_file is not None:
        raise CommandError("--token-file is for a server; name it with --url")
    return url is not None


def open_client(url: str | None, token_file: Path | None) -> Client:
    """Returns a client of the server that the options name; the client is imported only here."""
    from millstream.client import Client

    chosen = chosen_url(url, os.environ, Path(".millstream"))
    return Client(chosen, token=token_of(token_file))


@contextmanager
def open_wire(url: str | None, token_file: Path | None) -> Iterator[Wire]:
    """The connections to the same server, for requests that the client has no call for."""
    from millstream.client.wire import Wire

    wire = Wire(chosen_url(url, os.environ, Path(".millstream")), token_of(token_file), 10.0, 8)
    try:
        yield wire
    finally:
        wire.close()


def chosen_url(url: str | None, environ: Mapping[str, str], stores: Path) -> str:
    """Returns the server's address; CommandError if several servers run here."""
    named = url or environ.get("MILLSTREAM_URL")
    if named:
        return named
    if environ.get("MILLSTREAM_STORE"):
        from millstream.stores.shared.mirror_folder import mirrors_of

        store = environ["MILLSTREAM_STORE"]
        places = mirrors_of(store) if is_place(store) else [Path(store)]
    else:
        places = sorted(lock.parent for lock in stores.glob(f"*/{FILE}"))
    urls = [address for address in map(served_at, places) if address is not None]
    if len(urls) > 1:
        raise CommandError(f"several servers run here; name one with --url: {', '.join(urls)}")
    return urls[0] if urls else DEFAULT_URL
