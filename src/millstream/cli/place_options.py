"""The flags of `run` and `dev` for the addresses of sources, sinks and actions, and the store."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from millstream.errors import CommandError

Command = TypeVar("Command", bound=Callable[..., Any])


def addresses(
    ctx: click.Context, param: click.Parameter, given: tuple[str, ...]
) -> dict[str, str] | None:
    """`NAME=FORMAT:PATH`, repeated, as a mapping."""
    flag, addresses = param.opts[0], dict[str, str]()
    for text in given:
        name, equals, address = text.partition("=")
        if not (name and equals and address):
            such = "out=stderr" if flag == "--action" else "in=json:data"
            raise CommandError(f"{flag} must be {param.metavar}, as in {flag} {such}; got {text!r}")
        if name in addresses:
            raise CommandError(f"{flag}: {name!r} is given twice")
        addresses[name] = address
    return addresses or None


def place_options(command: Command) -> Command:
    """Add the addresses of sources, sinks and actions, and the store, to a command."""
    for option in (
        click.option(
            "--store", type=click.Path(path_type=Path), help="Default: ./.millstream/APP'S-NAME."
        ),
        click.option(
            "--action",
            "actions",
            multiple=True,
            metavar="NAME=ADDRESS",
            callback=addresses,
            help="Where to carry out an action: webhook:URL, line:FILE or stderr. Repeatable.",
        ),
        click.option(
            "--sink",
            "sinks",
            multiple=True,
            metavar="NAME=FORMAT:PATH",
            callback=addresses,
            help="Where to write an output stream, or 'late' or 'deadletters', as in "
            "hot=parquet:out or, the latest value of each key, counts=sqlite:counts.db. "
            "Repeatable.",
        ),
        click.option(
            "--source",
            "sources",
            multiple=True,
            metavar="NAME=FORMAT:PATH",
            callback=addresses,
            help="Where a source's events are, as in checkins=json:data/checkins. Repeatable.",
        ),
    ):
        command = option(command)
    return command
