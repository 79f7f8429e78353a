"""`millstream verify`: checks that every durable file of a store is as it was written."""

from __future__ import annotations

from pathlib import Path

import click

from millstream.cli.store import chosen_store, named_store, store_options


@click.command()
@store_options
@click.pass_context
def verify(ctx: click.Context, store: str | None, app: str | None) -> None:
    """Check every durable file of a store; exit 1 if anything is wrong.

    Prints one line for each problem: the file, what is wrong with it, and how to repair it; then a
    summary of what was checked. Changes nothing. The application may run meanwhile.

    For a shared store, it reads every object that its commits name, and then the rows of a mirror.

    \b
    Examples:
        millstream verify --store .millstream/retail
        millstream verify --store s3://bucket/retail
    """
    from millstream.places.place_address import place_at
    from millstream.verifying.findings import Findings
    from millstream.verifying.place_objects import verify_place
    from millstream.verifying.store import verify as look_through

    findings = Findings()
    named = named_store(store, app)
    if not isinstance(named, Path):
        verify_place(place_at(named), findings)
    if not findings.faults:  # otherwise no mirror can be made
        with chosen_store(store, app, logs=None) as chosen:
            rows = look_through(chosen)
        findings.faults += rows.faults
        findings.looked += rows.looked
    for finding in findings.faults:
        click.echo(str(finding))
    click.echo(findings.summary())
    if findings.faults:
        ctx.exit(1)
