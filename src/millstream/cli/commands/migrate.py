"""`millstream migrate`: migrates all stored slates to the application's present form."""

from __future__ import annotations

import os
import sys
from typing import Any

import click

from millstream.cli.commands.check import checked
from millstream.cli.place_options import accept_loss, place_options
from millstream.config import load
from millstream.counted_nouns import counted, verb
from millstream.notices import say
from millstream.settings.settings import resolve


@click.command()
@click.argument("app")
@place_options
@accept_loss
def migrate(app: str, **flags: Any) -> None:
    """Migrate all slates of a store to the application's present form.

    Slates migrate by themselves when they are next used. This migrates all of them at once, for
    their readers, and so that old migrations can be removed. The application must not run
    meanwhile. Give the sinks with which it is run: if the last run was killed, they get its
    unpublished output. The command may be stopped at any moment and started again. Slates that
    cannot be read stay unchanged, and it exits with 1.

    \b
    Examples:
        millstream migrate app.py
        millstream migrate app.py --store s3://bucket/retail
    """
    from millstream.driver.maintenance.slate_migration import migrate as bring

    target = load(app)
    settings = resolve(target.app, target.toml, os.environ, flags)
    checked(target.app)
    done = bring(target.app, settings, say)
    for name, slates in done.slates.items():
        click.echo(f"{name}: {done.changed[name]:,} of {counted(slates, 'slate')} migrated")
    if done.unfit:
        left = sum(done.unfit.values())
        stay = verb(left, "stays", "stay")
        click.echo(
            f"{counted(left, 'slate')} cannot be read and {stay} unchanged: {done.error}", err=True
        )
        sys.exit(1)
