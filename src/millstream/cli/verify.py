"""`millstream verify`: is every durable file of a store what was written?"""

from __future__ import annotations

from pathlib import Path

import click

from millstream.cli.store import chosen_store, store_options


@click.command()
@store_options
@click.pass_context
def verify(ctx: click.Context, store: Path | None, app: str | None) -> None:
    """Look through every durable file of a store; exit 1 if anything is wrong.

    Prints one line for each thing that is wrong: the file, what is wrong with it, and how to mend
    it; then what was looked at. Changes nothing. The application may run meanwhile.

    \b
    Example:
        millstream verify --store .millstream/retail
    """
    from millstream.verifying.store import verify as look_through

    findings = look_through(chosen_store(store, app))
    for finding in findings.found:
        click.echo(str(finding))
    click.echo(findings.summary())
    if findings.found:
        ctx.exit(1)
