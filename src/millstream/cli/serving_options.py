"""How a server is to serve: the flags of `run` and `serve`, and the options that settings become.

The token never is a word of the command line, where every user of the machine can read it: it comes
from a file or from MILLSTREAM_TOKEN.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from millstream.errors import DefinitionError
from millstream.log.retention import Retention
from millstream.server.options import PORT, Options, check
from millstream.settings import Settings

Command = TypeVar("Command", bound=Callable[..., Any])


def serving_options(command: Command) -> Command:
    """Add the options of the HTTP server to a command."""
    for option in (
        click.option(
            "--fan-out", metavar="N", help="Agents that send to the root itself.  [default: 32]"
        ),
        click.option(
            "--connections", metavar="N", help="At once; agents have up to 3 each.  [default: 4096]"
        ),
        click.option("--tls-key", type=click.Path(path_type=Path), help="Its key."),
        click.option("--tls-cert", type=click.Path(path_type=Path), help="Serve HTTPS with this."),
        click.option(
            "--token-file",
            type=click.Path(path_type=Path),
            help="The secret that every request must bring; or MILLSTREAM_TOKEN holds it.",
        ),
        click.option("--port", metavar="N", help=f"0: any that is free.  [default: {PORT}]"),
        click.option("--host", metavar="NAME", help="Where to listen.  [default: 127.0.0.1]"),
        click.option(
            "--allow-host",
            "hosts",
            multiple=True,
            callback=lambda ctx, param, given: given or None,
            metavar="NAME",
            help="A name, besides its own, that the server is called by. Repeatable.",
        ),
    ):
        command = option(command)
    return command


def options_of(settings: Settings, environ: Mapping[str, str] = os.environ) -> Options:
    """How the server of a run is to serve; DefinitionError if that is not safe."""
    options = Options(
        store=settings.store.absolute(),
        host=settings.host,
        port=settings.port,
        token=token_of(settings.token_file, environ),
        tls_cert=settings.tls_cert,
        tls_key=settings.tls_key,
        hosts=settings.hosts,
        max_body=settings.max_body,
        rate=settings.rate,
        connections=settings.connections,
        fan_out=settings.fan_out,
        backlog_bytes=settings.backlog_bytes,
        retention=Retention(settings.retain_age, settings.retain_bytes),
    )
    check(options)
    return options


def token_of(file: Path | None, environ: Mapping[str, str] = os.environ) -> str | None:
    """The secret: from its file, else from MILLSTREAM_TOKEN."""
    if file is None:
        return environ.get("MILLSTREAM_TOKEN") or None
    try:
        token = file.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        what = getattr(error, "strerror", None) or error
        raise DefinitionError(f"the token file {file} cannot be read: {what}") from None
    if not token:
        raise DefinitionError(f"the token file {file} is empty; write one line of text into it")
    return token
