"""`millstream agent`: the process on a log server that makes panes where the logs are."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from millstream.cli.stop_signals import stoppable
from millstream.errors import CommandError
from millstream.model.place import shown_path
from millstream.model.size import byte_count
from millstream.notices import say
from millstream.service.server_settings import token_of
from millstream.version import VERSION

if TYPE_CHECKING:
    from millstream.agent.options import AgentOptions
    from millstream.windows.placed import PlacedJob


@click.command()
@click.argument("app", required=False)
@click.option(
    "--job",
    "jobs",
    multiple=True,
    metavar="NAME",
    help="A job to run. Repeatable.  [default: all that have the node]",
)
@click.option("--node", required=True, metavar="NAME", help="The name of this node in the jobs.")
@click.option(
    "--log",
    "patterns",
    required=True,
    multiple=True,
    metavar="GLOB",
    help="The files of the log, rotated ones too, as in '/var/log/app.log*'. Repeatable.",
)
@click.option("--root", required=True, metavar="URL", help="The application's server.")
@click.option("--parent", metavar="NODE=URL", help="Set by hand: who merges this agent's panes.")
@click.option("--tree", metavar="NODE", help="Set by hand: the topmost parent.")
@click.option(
    "--state",
    type=click.Path(path_type=Path),
    help="The folder of its state.  [default: ./.millstream/agents/JOB-NODE; without APP, NODE]",
)
@click.option("--memory", default="50MiB", show_default=True, help="The most memory it may use.")
@click.option(
    "--buffer", default="256MiB", show_default=True, help="The most panes that wait on disk."
)
@click.option(
    "--nice", default=10, show_default=True, help="Its niceness, 0 to 19 (lowest priority)."
)
@click.option("--once", is_flag=True, help="Read the log to its end and stop.")
@click.option(
    "--serve",
    metavar="[HOST:]PORT",
    help="Listen here for children that the root may assign, as in 0.0.0.0:8480.",
)
@click.option(
    "--advertise", metavar="URL", help="The URL at which others reach it.  [default: detected]"
)
@click.option("--most-children", default=32, show_default=True, help="The most children.")
@click.option(
    "--tls-cert", type=click.Path(path_type=Path), help="Serve HTTPS with this certificate."
)
@click.option("--tls-key", type=click.Path(path_type=Path), help="The certificate's key.")
@click.option(
    "--ca", type=click.Path(path_type=Path), help="Trusted certificates.  [default: the system's]"
)
@click.option("--children", metavar="NODE,...", help="Set by hand: whose panes it merges.")
@click.option(
    "--allow",
    multiple=True,
    metavar="FILE.pub|DIR|sha256:HEX",
    help="Packages that may run here: those signed by a key, or one by its hash. Repeatable.",
)
@click.option(
    "--token-file",
    type=click.Path(path_type=Path),
    help="A file with the server's token.  [default: MILLSTREAM_TOKEN]",
)
def agent(app: str | None, jobs: tuple[str, ...], node: str, **flags: Any) -> None:
    """Follow the log of a node and send its panes to the jobs of a running application.

    APP is the application's file, the same one that the root runs, or a package of it, which must
    be allowed here. Without APP the root says which jobs the node runs. The log is read once for
    all jobs. After a restart the agent continues where it was: nothing is lost, nothing counted
    twice. STATE/status.json has its status.

    \b
    Examples:
        millstream agent app.py --node web1 --log '/var/log/app.log*' --root http://root:8470
        millstream agent app.py --node web2 --log old.log --root http://root:8470 --once
        millstream agent app.py --node web3 --log app.log --root http://root:8470 --serve 8480
        millstream agent --node web4 --log app.log --root http://root:8470 --allow release.key.pub
    """
    from millstream.agent.agent import run_hosted, run_jobs
    from millstream.agent.options import jobs_of
    from millstream.agent.state import job_folder
    from millstream.packages.keys import allowed_of
    from millstream.service.app_packages import application

    state: Path | None = flags["state"]
    if app is None:
        for option, value in (("--once", flags["once"]), ("--job", jobs)):
            if value:
                raise CommandError(
                    f"{option} needs the application's file: without it the root says which jobs "
                    "there are, and for how long"
                )
        options = _options(node, state or Path(".millstream/agents") / node, flags)
        _give_way(flags["nice"])
        folder = shown_path(options.state)
        say(f"agent of node {node} for the jobs of {options.root}, state {folder}")
        allowed = allowed_of(flags["allow"])
        stoppable(lambda stop: run_hosted(allowed, options, stop, say))
        return
    base = state or Path(".millstream/agents")
    placed = jobs_of(application(app, flags["allow"], base / "packages"), jobs, node)
    folders: dict[Path, PlacedJob] = {}
    for job in placed:
        if state is None:
            folders[base / f"{job.name}-{node}"] = job
        else:
            folders[job_folder(state, job.name) if len(placed) > 1 else state] = job
    options = _options(node, state or next(iter(folders)), flags)
    _give_way(flags["nice"])
    for job_state, job in folders.items():
        say(f"agent of job {job.name}, node {node}, state {shown_path(job_state)}")
    stoppable(lambda stop: run_jobs(folders, options, stop, say))


def _options(node: str, state: Path, flags: dict[str, Any]) -> AgentOptions:
    from millstream.agent.options import AgentOptions

    return AgentOptions(
        node=node,
        patterns=flags["patterns"],
        root=flags["root"],
        parent=_parent(flags["parent"]),
        tree=flags["tree"] or "",
        state=state,
        memory=byte_count(flags["memory"], "--memory"),
        buffer=byte_count(flags["buffer"], "--buffer"),
        once=flags["once"],
        serve=_address(flags["serve"]),
        children=tuple(filter(None, map(str.strip, (flags["children"] or "").split(",")))),
        advertise=flags["advertise"],
        most_children=flags["most_children"],
        token=token_of(flags["token_file"]),
        tls_cert=flags["tls_cert"],
        tls_key=flags["tls_key"],
        ca=flags["ca"],
        version=VERSION,
    )


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
    """Returns HOST:PORT; a PORT alone listens on this machine only, as with all our servers."""
    if text is None or ":" in text:
        return text
    return f"127.0.0.1:{text}"
