"""Which server a command talks to: `--url`, MILLSTREAM_URL, or the one that serves here.

A server leaves its process and its address in its store's server.lock. So where one application
runs, its commands need no address.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from millstream.cli.serving_options import token_of
from millstream.errors import CommandError
from millstream.server.lock import FILE, served_at
from millstream.server.options import PORT

if TYPE_CHECKING:
    from millstream.client import Client

Command = TypeVar("Command", bound=Callable[..., Any])
DEFAULT_URL = f"http://127.0.0.1:{PORT}"


def url_options(command: Command) -> Command:
    """Add `--url` and `--token-file` to a command that talks to a server."""
    where = f"The server.  [default: MILLSTREAM_URL, the one that serves here, or {DEFAULT_URL}]"
    return _options(where)(command)


def url_instead_options(command: Command) -> Command:
    """The same for a command that reads a store, unless it is told to ask a server."""
    return _options("Ask this server instead of reading a store.")(command)


def _options(where: str) -> Callable[[Command], Command]:
    def add(command: Command) -> Command:
        url = click.option("--url", metavar="URL", help=where)
        token = click.option(
            "--token-file",
            type=click.Path(path_type=Path),
            help="A file with the server's token.  [default: MILLSTREAM_TOKEN]",
        )
        return url(token(command))

    return add


def open_client(url: str | None, token_file: Path | None) -> Client:
    """A client of the server that the options name; the only place that loads one."""
    from millstream.client import Client

    chosen = chosen_url(url, os.environ, Path(".millstream"))
    return Client(chosen, token=token_of(token_file))


def chosen_url(url: str | None, environ: Mapping[str, str], stores: Path) -> str:
    """The server's address; of several that serve here, none is chosen."""
    named = url or environ.get("MILLSTREAM_URL")
    if named:
        return named
    if environ.get("MILLSTREAM_STORE"):
        places = [Path(environ["MILLSTREAM_STORE"])]
    else:
        places = sorted(lock.parent for lock in stores.glob(f"*/{FILE}"))
    found = [served for served in map(served_at, places) if served is not None]
    if len(found) > 1:
        raise CommandError(f"several servers run here; name one with --url: {', '.join(found)}")
    return found[0] if found else DEFAULT_URL
