"""`millstream plan`: shows the consequences of a changed application for its store."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from millstream.cli.commands.check import checked
from millstream.cli.store import mirrored
from millstream.config import load
from millstream.counted_nouns import counted
from millstream.errors import StoreError
from millstream.model.workflow import Workflow
from millstream.settings.settings import resolve, store_of

if TYPE_CHECKING:
    from millstream.driver.startup.change_plan import ChangePlan
    from millstream.driver.startup.consequence import Consequence

SUBJECTS = ("update", "slates", "source", "stream", "store")


@click.command()
@click.argument("app")
@click.option("--store", metavar="DIR|ADDRESS", help="The store.  [default: the application's]")
@click.option(
    "--sample",
    type=click.IntRange(0),
    metavar="N",
    help="Read only N slates of each update in each shard.  [default: all]",
)
@click.option("--json", "as_json", is_flag=True, help="Each consequence as a line of JSON.")
def plan(app: str, store: str | None, sample: int | None, as_json: bool) -> None:
    """Show the consequences of an application's present form for its store; changes nothing.

    Shows which updates are kept, renamed, new, or gone and leave slates without an owner; which
    slates fit, migrate, or cannot be read; and what happens to sources and streams. Exits with 1 if
    something would be lost: `run` refuses that, unless the loss is accepted by name. Works while
    the application runs.

    \b
    Examples:
        millstream plan app.py
        millstream plan app.py --store s3://bucket/retail --sample 1000
    """
    target = load(app)
    workflow = resolve(target.app, target.toml, os.environ, {}).applied(checked(target.app))
    named = store if store is not None else str(store_of(target.app, target.toml, os.environ))
    from millstream.places.place_address import is_place

    if is_place(named):
        with mirrored(named) as folder:
            changes = planned(workflow, folder, sample)
    else:
        if not Path(named).is_dir():
            raise StoreError(f"no store at {named}; a first run makes it, and nothing can be lost")
        changes = planned(workflow, Path(named), sample)
    if as_json:
        import msgspec

        for consequence in changes.consequences:
            click.echo(msgspec.json.encode(consequence).decode())
    else:
        _show(changes)
    if changes.losses():
        sys.exit(1)


def planned(workflow: Workflow, folder: Path, sample: int | None) -> ChangePlan:
    """Returns the plan for a store in a folder, which may change meanwhile."""
    from millstream.driver.startup.change_plan import plan_changes, stranded_events
    from millstream.driver.startup.start import unread_records
    from millstream.stores.home import Home
    from millstream.stores.soft import read_committed

    home = Home.open(folder)
    if home.facts.app != workflow.name:
        raise StoreError(
            f"{folder}: this is the store of app {home.facts.app!r}, not of {workflow.name!r}"
        )
    store, progress = home.store(), read_committed(folder)
    try:
        changes = plan_changes(
            workflow,
            home.facts,
            progress,
            store,
            sample=sample if progress.batch >= 0 else 0,
            committed=home.committed,
            unread=unread_records(home, workflow, progress),
        )
        stranded = stranded_events(workflow, home, store, progress, changes.renamed)
        changes.consequences.extend(stranded)
        return changes
    finally:
        store.close()


def _show(changes: ChangePlan) -> None:
    for subject in SUBJECTS:
        for consequence in changes.consequences:
            if consequence.subject == subject:
                click.echo(line(consequence))
    losses = changes.losses()
    if losses:
        names = dict.fromkeys(loss.name for loss in losses)
        flags = " ".join(f"--accept-loss {name}" for name in names)
        number = counted(len(losses), "loss", "losses")
        click.echo(f"{number}: `run` refuses this, unless it is given {flags}", err=True)
    else:
        click.echo("nothing is lost", err=True)


def line(consequence: Consequence) -> str:
    """Formats a consequence in one line for people."""
    mark = "!" if consequence.loss else " "
    subject = f"{consequence.subject:7} {consequence.name:24} {consequence.state:9}"
    return f"{mark} {subject} {consequence.text}"
