"""`millstream reducers`: another number of reducers for a job, while it runs."""

from __future__ import annotations

from pathlib import Path

import click

from millstream.cli.which_server import open_client, url_options
from millstream.errors import CommandError
from millstream.nearest import did_you_mean
from millstream.windows.reducers import MOST

PANES = ".panes"


@click.command()
@click.argument("job")
@click.argument("number", type=click.IntRange(1, MOST))
@url_options
def reducers(job: str, number: int, url: str | None, token_file: Path | None) -> None:
    """Change how many reducers JOB has, while it runs: its windows are worked out by so many from
    the first one on that no node has reached yet.

    The job's panes must come from agents. It stays so when the application is started again, until
    the number in its definition is another.

    \b
    Examples:
        millstream reducers errors 4
        millstream reducers errors 1 --url http://127.0.0.1:8470
    """
    with open_client(url, token_file) as client:
        posts = {one["name"] for one in client.streams() if one["posts"]}
        jobs = sorted(one.removesuffix(PANES) for one in posts if one.endswith(PANES))
        if job not in jobs:
            hint = did_you_mean(job, jobs) if jobs else "the application has none"
            raise CommandError(f"there is no job {job!r} with agents; {hint}")
        client.send_one(job + PANES, {"tree": "", "reducers": number})
    click.echo(f"{job}: {number} reducers, from the first window that no node has reached")
