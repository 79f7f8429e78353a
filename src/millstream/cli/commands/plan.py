"""`millstream plan`: shows the consequences of a changed application for its store."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click
import msgspec

from millstream.cli.commands.check import checked
from millstream.cli.place_options import place_options
from millstream.cli.store import mirrored
from millstream.config import load
from millstream.counted_nouns import counted
from millstream.errors import StoreError
from millstream.model.workflow import Workflow
from millstream.settings.settings import Settings, resolve

if TYPE_CHECKING:
    from millstream.driver.startup.change_plan import ChangePlan
    from millstream.driver.startup.consequence import Consequence

SUBJECTS = ("update", "slates", "source", "stream", "store")


@click.command()
@click.argument("app")
@place_options
@click.option(
    "--shards", type=click.IntRange(1), metavar="N", help="The shards that the run would ask for."
)
@click.option(
    "--sample",
    type=click.IntRange(0),
    metavar="N",
    help="Read only N slates of each update in each shard.  [default: all]",
)
@click.option("--json", "as_json", is_flag=True, help="Each consequence as a line of JSON.")
def plan(app: str, sample: int | None, as_json: bool, **flags: Any) -> None:
    """Show the consequences of an application's present form for its store; changes nothing.

    Shows which updates are kept, renamed, new, or gone and leave slates without an owner; which
    slates fit, migrate, or cannot be read; and what happens to sources and streams. Exits with 1 if
    something would be lost: `run` refuses that, unless the loss is accepted by name. Exits with 1
    too if a run with these settings would be refused for another reason, such as the address of a
    source or the number of shards: give the options that the run is given. Works while the
    application runs.

    \b
    Examples:
        millstream plan app.py
        millstream plan app.py --store s3://bucket/retail --sample 1000
    """
    target = load(app)
    settings = resolve(target.app, target.toml, os.environ, flags)
    workflow, storage = settings.updates.applied(checked(target.app)), settings.storage
    if storage.place:
        with mirrored(storage.place) as folder:
            changes = planned(workflow, folder, sample)
            changes.consequences.extend(_refused_in_place(workflow, settings, folder))
    else:
        if not storage.store.is_dir():
            raise StoreError(
                f"no store at {storage.store}; a first run makes it, and nothing can be lost"
            )
        changes = planned(workflow, storage.store, sample)
        changes.consequences.extend(_refused(workflow, settings, storage.store))
    if as_json:
        for consequence in changes.consequences:
            click.echo(msgspec.json.encode(consequence).decode())
    else:
        _show(changes)
    if changes.losses() or changes.refused:
        sys.exit(1)


def _refused(workflow: Workflow, settings: Settings, folder: Path) -> list[Consequence]:
    """Returns what a run would refuse in a store in a folder."""
    from millstream.driver.startup.refused_settings import refusals
    from millstream.stores.home import Home
    from millstream.stores.soft import read_committed

    return [*refusals(workflow, settings, Home.open(folder), read_committed(folder))]


def _refused_in_place(
    workflow: Workflow, settings: Settings, mirror: Path
) -> Iterator[Consequence]:
    """Yields what a run would refuse in a store in a place, of which there is a mirror."""
    from millstream.driver.startup.refused_settings import refusals
    from millstream.log.stream_logs import PlaceLogs
    from millstream.places.place_address import place_at
    from millstream.sources.record_log import fetch_lists
    from millstream.stores.home import Home
    from millstream.stores.soft import read_committed

    place, facts = place_at(settings.storage.place), Home.open(mirror).facts
    with TemporaryDirectory(prefix="millstream-") as folder:
        (Path(folder) / "sources").mkdir()
        fetch_lists(place, Path(folder) / "sources")
        home, progress = Home(Path(folder), facts), read_committed(mirror)
        with closing(PlaceLogs(place, Path(folder) / "logs")) as logs:
            for refusal in refusals(workflow, settings, home, progress, logs):
                text = refusal.text.replace(folder, settings.storage.place)
                yield msgspec.structs.replace(refusal, text=text)


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
    losses, refused = changes.losses(), changes.refused
    if refused:
        reasons = counted(len(refused), "reason")
        click.echo(f"{reasons} for which `run` does not start, whatever is accepted", err=True)
    if losses:
        names = dict.fromkeys(loss.name for loss in losses)
        flags = " ".join(f"--accept-loss {name}" for name in names)
        number = counted(len(losses), "loss", "losses")
        click.echo(f"{number}: `run` refuses this, unless it is given {flags}", err=True)
    elif not refused:
        click.echo("nothing is lost", err=True)


def line(consequence: Consequence) -> str:
    """Formats a consequence in one line for people."""
    mark = "!" if consequence.loss else " "
    subject = f"{consequence.subject:7} {consequence.name:24} {consequence.state:9}"
    return f"{mark} {subject} {consequence.text}"
