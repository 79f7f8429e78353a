"""The flags of `run` and `dev` for the addresses of sources, sinks and actions, and the store."""

from __future__ import annotations

import click

from millstream.cli.option_groups import option_group, pairs

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
        callback=pairs("in=json:data", once=True),
        help="Where to read a source's events, as in checkins=json:data/checkins. Repeatable.",
    ),
    click.option(
        "--sink",
        "sinks",
        multiple=True,
        metavar="NAME=FORMAT:PATH",
        callback=pairs("in=json:data", once=True),
        help="Where to write an output stream, or 'late' or 'deadletters', as in "
        "hot=parquet:out, counts=sqlite:counts.db or counts=postgres:counts?server=db. "
        "Repeatable.",
    ),
    click.option(
        "--action",
        "actions",
        multiple=True,
        metavar="NAME=ADDRESS",
        callback=pairs("out=stderr", once=True),
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
