"""`millstream reducers`: changes the number of reducers of a running job."""

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
    """Change the number of reducers of JOB while it runs, from the first window that no node has
    reached yet.

    The job's panes must come from agents. The number stays after a restart of the application,
    until the number in the job's definition changes.

    \b
    Examples:
        millstream reducers errors 4
        millstream reducers errors 1 --url http://127.0.0.1:8470
    """
    with open_client(url, token_file) as client:
        posts = {stream.name for stream in client.streams() if stream.posts}
        jobs = sorted(name.removesuffix(PANES) for name in posts if name.endswith(PANES))
        if job not in jobs:
            hint = did_you_mean(job, jobs) if jobs else "the application has none"
            raise CommandError(f"there is no job {job!r} with agents; {hint}")
        client.send_one(job + PANES, {"tree": "", "reducers": number})
    click.echo(f"{job}: {number} reducers, from the first window that no node has reached")
