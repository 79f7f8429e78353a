"""The flags of `run` and `dev` for the addresses of sources, sinks and actions, and the store."""

from __future__ import annotations

import click

from millstream.cli.option_groups import option_group
from millstream.errors import CommandError


def addresses(
    ctx: click.Context, param: click.Parameter, given: tuple[str, ...]
) -> dict[str, str] | None:
    """Parses repeated `NAME=FORMAT:PATH` into a mapping."""
    flag, addresses = param.opts[0], dict[str, str]()
    for text in given:
        name, equals, address = text.partition("=")
        if not (name and equals and address):
            example = "out=stderr" if flag == "--action" else "in=json:data"
            raise CommandError(
                f"{flag} must be {param.metavar}, as in {flag} {example}; got {text!r}"
            )
        if name in addresses:
            raise CommandError(f"{flag}: {name!r} is given twice")
        addresses[name] = address
    return addresses or None


accept_loss = click.option(
    "--accept-loss",
    multiple=True,
    metavar="NAME",
    callback=lambda ctx, param, given: given or None,
    help="Accept this loss, which `millstream plan` names, or 'all'. Repeatable.",
)
"""Adds `--accept-loss` to `run` and `migrate`."""


place_options = option_group(
    click.option(
        "--source",
        "sources",
        multiple=True,
        metavar="NAME=FORMAT:PATH",
        callback=addresses,
        help="Where to read a source's events, as in checkins=json:data/checkins. Repeatable.",
    ),
    click.option(
        "--sink",
        "sinks",
        multiple=True,
        metavar="NAME=FORMAT:PATH",
        callback=addresses,
        help="Where to write an output stream, or 'late' or 'deadletters', as in "
        "hot=parquet:out, counts=sqlite:counts.db or counts=postgres:counts?server=db. "
        "Repeatable.",
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
        "--cache", metavar="DIR", help="The folder for each host's copies of a shared store."
    ),
    click.option(
        "--store",
        metavar="DIR|ADDRESS",
        help="A folder, or s3://BUCKET/PREFIX, gs://, az://, shared:DIR.  "
        "[default: ./.millstream/APP'S-NAME]",
    ),
)
"""Adds the addresses of sources, sinks and actions, and the store, to a command."""
