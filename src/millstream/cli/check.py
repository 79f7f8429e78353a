"""`millstream check`: is the application well defined?"""

from __future__ import annotations

import click

from millstream.codec import slate_codec
from millstream.config import load
from millstream.errors import DefinitionError
from millstream.model.app import App
from millstream.model.slate import Table
from millstream.model.workflow import Workflow


@click.command()
@click.argument("app")
def check(app: str) -> None:
    """Check an application without running it.

    Builds the whole graph, and looks at every name, argument and slate. Exits 2 at the first
    mistake, and says where it is.

    \b
    Example:
        millstream check app.py
    """
    workflow = checked(load(app).app)
    maps = len(workflow.functions) - len(workflow.updates)
    counts = (
        _count(len(workflow.sources), "source"),
        _count(maps, "map"),
        _count(len(workflow.updates), "update"),
        _count(len(workflow.outputs), "output"),
    )
    click.echo(f"{workflow.name}: fine: {', '.join(counts)}")


def checked(app: App) -> Workflow:
    """The workflow, checked with its slates and not empty; what it warns of goes to stderr."""
    workflow = app.checked()
    if not workflow.functions:
        raise DefinitionError(
            f"app {app.name!r} has no function: there is nothing to run; add one with @app.map or "
            "@app.update"
        )
    for update in workflow.updates:
        if update.slate is not Table:
            slate_codec(update.slate)
    for warning in workflow.warnings:
        click.echo(f"warning: {warning}", err=True)
    return workflow


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
