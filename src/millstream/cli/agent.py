"""`millstream agent`: the process on a log server, which makes panes where the logs are."""

from __future__ import annotations

import os
from pathlib import Path
from threading import Event
from typing import Any

import click

from millstream.cli.progress import say
from millstream.cli.serving_options import token_of
from millstream.cli.stopping import stoppable
from millstream.config import load
from millstream.errors import CommandError
from millstream.model.place import shown_path
from millstream.model.size import byte_count


@click.command()
@click.argument("app")
@click.option(
    "--job",
    "jobs",
    multiple=True,
    metavar="NAME",
    help="Which of its jobs, if it has several. Repeatable: they share one reading of the log.",
)
@click.option("--node", required=True, metavar="NAME", help="Which of the job's nodes this is.")
@click.option(
    "--log",
    "patterns",
    required=True,
    multiple=True,
    metavar="GLOB",
    help="The files of the log, rotated ones too, as in '/var/log/app.log*'. Repeatable.",
)
@click.option("--root", required=True, metavar="URL", help="The application's server.")
@click.option("--parent", metavar="NODE=URL", help="The agent that merges this one's panes.")
@click.option("--tree", metavar="NODE", help="The topmost parent.  [default: the parent]")
@click.option(
    "--state",
    type=click.Path(path_type=Path),
    help="What it needs to go on.  [default: ./.millstream/agents/JOB-NODE]",
)
@click.option("--memory", default="50MiB", show_default=True, help="Memory it may have.")
@click.option("--buffer", default="256MiB", show_default=True, help="Panes that wait on disk.")
@click.option("--nice", default=10, show_default=True, help="How it gives way to others.")
@click.option("--once", is_flag=True, help="Read the log to its end and stop.")
@click.option("--serve", metavar="[HOST:]PORT", help="Where children send their panes.")
@click.option("--children", metavar="NODE,...", help="Whose panes it merges with its own.")
@click.option(
    "--token-file",
    type=click.Path(path_type=Path),
    help="A file with the server's token.  [default: MILLSTREAM_TOKEN]",
)
def agent(app: str, jobs: tuple[str, ...], node: str, **flags: Any) -> None:
    """Follow the log of a node and send its panes to a job of an application that runs.

    APP is the application's file, the same one that the root runs. Started again, the agent goes on
    where it was: nothing is lost, nothing counted twice. STATE/status.json says how it is.

    \b
    Examples:
        millstream agent app.py --node web1 --log '/var/log/app.log*' --root http://root:8470
        millstream agent app.py --node web2 --log old.log --root http://root:8470 --once
        millstream agent app.py --job errors --job pages --node web1 --log app.log --root http://root:8470
    """
    from millstream.agent.agent import run_agent
    from millstream.agent.options import Options, job_of

    loaded = load(app).app
    placed = [job_of(loaded, job, node) for job in dict.fromkeys(jobs) or (None,)]
    several = len(placed) > 1
    options = Options(
        node=node,
        patterns=flags["patterns"],
        root=flags["root"],
        parent=_parent(flags["parent"]),
        tree=flags["tree"] or "",
        state=flags["state"]
        or Path(".millstream/agents") / (node if several else f"{placed[0].name}-{node}"),
        memory=byte_count(flags["memory"], "--memory"),
        buffer=byte_count(flags["buffer"], "--buffer"),
        once=flags["once"],
        serve=_address(flags["serve"]),
        children=tuple(filter(None, map(str.strip, (flags["children"] or "").split(",")))),
        token=token_of(flags["token_file"]),
    )
    _give_way(flags["nice"])
    names = f"job{'s' * several} {', '.join(one.name for one in placed)}"
    say(f"agent of {names}, node {node}, state {shown_path(options.state)}")

    def work(stop: Event) -> dict[str, object]:
        return run_agent(placed if several else placed[0], options, stop, say)

    stoppable(work)


def _give_way(nice: int) -> None:
    if not 0 <= nice <= 19:
        raise CommandError(f"--nice must be 0 to 19, 19 to give way to all others; got {nice}")
    try:
        os.nice(nice)
    except OSError as error:
        raise CommandError(
            f"--nice {nice}: {error.strerror or error}; --nice 0 leaves it as it is"
        ) from None


def _parent(text: str | None) -> tuple[str, str] | None:
    if text is None:
        return None
    node, equals, url = text.partition("=")
    if not (node and equals and url):
        raise CommandError(
            f"--parent must be NODE=URL, as in --parent web1=http://web1:8480; got {text!r}"
        )
    return node, url


def _address(text: str | None) -> str | None:
    """`PORT` alone is at this machine only, as with every server of ours."""
    if text is None or ":" in text:
        return text
    return f"127.0.0.1:{text}"
