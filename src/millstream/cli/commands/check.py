"""`millstream check`: checks that an application is well defined."""

from __future__ import annotations

import click

from millstream.codec import slate_codec
from millstream.config import load
from millstream.counted_nouns import counted
from millstream.errors import CommandError, DefinitionError
from millstream.model.app import AppDefinition
from millstream.model.slate import Table
from millstream.model.workflow import Workflow
from millstream.settings.setting_values import check_form


@click.command()
@click.argument("app")
@click.option("--node", metavar="NAME", help="Check that the agent of this node could start.")
@click.option(
    "--log", multiple=True, metavar="GLOB", help="The agent's files; check that it can read them."
)
@click.option("--job", metavar="NAME", help="The agent's job.  [default: all that have the node]")
def check(app: str, node: str | None, log: tuple[str, ...], job: str | None) -> None:
    """Check an application without running it.

    Builds the whole graph, and checks every name, argument and slate, and how its sources and logs
    are read. Exits with 2 at the first mistake, and says where it is.

    \b
    Examples:
        millstream check app.py
        millstream check app.toml --node web1 --log '/var/log/app.log*'
    """
    target = load(app)
    workflow = checked(target.app)
    addresses = target.app.settings.get("sources", {})
    for source in workflow.sources:
        if source.name in addresses:
            check_form(source, addresses[source.name])
    if node is not None:
        from millstream.agent.log.array_files import check_files
        from millstream.agent.options import jobs_of

        jobs = jobs_of(target.app, [] if job is None else [job], node)
        check_files([placed.logs for placed in jobs], log, growing=False)
    elif job is not None:
        raise CommandError("--job needs --node: it names the job of that node's agent")
    elif log:
        raise CommandError("--log needs --node: it names the files of that node's agent")
    maps = len(workflow.functions) - len(workflow.updates)
    counts: tuple[str, ...] = (
        counted(len(workflow.sources), "source"),
        counted(maps, "map"),
        counted(len(workflow.updates), "update"),
        counted(len(workflow.outputs), "output"),
    )
    if workflow.lookups:
        counts += (counted(len(workflow.lookups), "lookup"),)
    click.echo(f"{workflow.name}: fine: {', '.join(counts)}")


def checked(app: AppDefinition) -> Workflow:
    """Returns the checked workflow, with functions and valid slates; warnings go to stderr."""
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
