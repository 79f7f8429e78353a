"""The settings of an agent, and their checks.

They come from the command line. Only the job comes from the application's file, the same one that
the root runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from millstream.errors import CommandError, DefinitionError
from millstream.model.app import AppDefinition
from millstream.model.size import MIB
from millstream.nearest import did_you_mean
from millstream.trees.tree_placement import FAN_OUT
from millstream.windows.placed import PlacedJob

MEMORY, BUFFER = 50 * MIB, 256 * MIB
PLACED = "*"
"""The name of the tree of all agents that the root places."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentOptions:
    """The settings of an agent. Raises CommandError if they do not fit together."""

    node: str
    patterns: tuple[str, ...]
    """Glob patterns of the files of its log."""
    root: str
    """The address of the application's server."""
    state: Path
    """The folder with the state that it resumes from after a restart."""
    parent: tuple[str, str] | None = None
    """The name and the address of the agent that merges this one's panes."""
    tree: str = ""
    """The topmost parent. If empty: the parent or, without one, the node itself."""
    memory: int = MEMORY
    """The limit of resident bytes."""
    buffer: int = BUFFER
    """The limit of bytes of panes that wait on disk."""
    once: bool = False
    """True if the agent ends when the log is read to its end."""
    serve: str | None = None
    """HOST:PORT at which it takes its children's panes."""
    children: tuple[str, ...] = ()
    """Its children, in a tree that is laid by hand."""
    advertise: str | None = None
    """The URL by which others reach it; None: see `addresses`."""
    most_children: int = FAN_OUT
    token: str | None = None
    tls_cert: Path | None = None
    tls_key: Path | None = None
    """With a certificate and its key it serves HTTPS."""
    version: str = ""
    """The version of Millstream."""
    ca: Path | None = None
    """Certificates of the authorities that it trusts; None: the system's."""

    def __post_init__(self) -> None:
        if not self.patterns or not all(self.patterns):
            raise CommandError(
                "--log must name the files of the log, as in --log '/var/log/app.log*'"
            )
        for option, url in (
            ("--root", self.root),
            ("--parent", (self.parent or ("", "http://x"))[1]),
            ("--advertise", self.advertise or "http://x"),
        ):
            if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).netloc:
                raise CommandError(
                    f"{option} must be the address of a server, as in http://root:8470; got {url!r}"
                )
        if self.children and self.serve is None:
            raise CommandError("--children needs --serve: the address at which a parent listens")
        if self.parent is not None and self.serve is not None and not self.children:
            raise CommandError(
                "--parent and --serve need --children, in a tree that is laid by hand; leave "
                "--parent out, and the root places the agent and its children"
            )
        if self.advertise is not None and self.serve is None:
            raise CommandError("--advertise needs --serve: it is the address of its server")
        if (self.tls_cert is None) != (self.tls_key is None):
            raise CommandError("--tls-cert and --tls-key go together: a certificate and its key")
        if self.tls_cert is not None and self.serve is None:
            raise CommandError("--tls-cert needs --serve: it is the certificate of its server")
        if self.most_children < 1:
            raise CommandError(f"--most-children must be 1 or more; got {self.most_children}")

    @property
    def laid(self) -> bool:
        """True if the tree is laid by hand; otherwise the root places this agent."""
        return self.parent is not None or bool(self.children)

    @property
    def whole_tree(self) -> str:
        if not self.laid:
            return self.tree or PLACED
        return self.tree or (self.parent[0] if self.parent else self.node)


def check_tree(placed: PlacedJob, options: AgentOptions) -> None:
    """Raise CommandError if a parent or a child is not another node of the job."""
    named = [("--children", child) for child in options.children]
    if options.parent is not None:
        named.append(("--parent", options.parent[0]))
    others = [node for node in placed.nodes if node != options.node]
    for option, node in named:
        if node not in others:
            raise CommandError(
                f"{option} must name other nodes of job {placed.name!r}; got {node!r}; "
                f"{did_you_mean(node, others) if others else 'there are none'}"
            )
    for child in options.children:
        if options.children.count(child) > 1 or (options.parent or ("",))[0] == child:
            raise CommandError(
                f"--children must name each node once, and none that is --parent; got {child!r} "
                "more than once"
            )
    if options.tree and options.tree not in placed.nodes:
        raise CommandError(
            f"--tree must name the topmost parent, a node of job {placed.name!r}; got "
            f"{options.tree!r}; {did_you_mean(options.tree, placed.nodes)}"
        )


def jobs_of(app: AppDefinition, names: Sequence[str], node: str) -> list[PlacedJob]:
    """Returns the jobs that the agent of a node makes panes for: the named ones, or all that have
    the node."""
    jobs = {name: part for name, part in app.parts.items() if isinstance(part, PlacedJob)}
    with_logs = {name: job for name, job in jobs.items() if job.logs is not None}
    if not with_logs:
        raise DefinitionError(
            f"app {app.name!r} has no job that takes panes from agents; say how its logs are read, "
            "as in app.add(job, name='errors', nodes=['web1'], logs=ms.windows.Logs(ts='time'))"
        )
    if not names:
        here = [job for job in with_logs.values() if node in job.nodes]
        if not here:
            known = sorted({other for job in with_logs.values() for other in job.nodes})
            raise CommandError(
                f"no job of app {app.name!r} has a node {node!r}; {did_you_mean(node, known)}"
            )
        return here
    return [_named(app, jobs, with_logs, name, node) for name in dict.fromkeys(names)]


def _named(
    app: AppDefinition,
    jobs: Mapping[str, PlacedJob],
    with_logs: Mapping[str, PlacedJob],
    name: str,
    node: str,
) -> PlacedJob:
    if name not in jobs:
        raise CommandError(f"app {app.name!r} has no job {name!r}; {did_you_mean(name, with_logs)}")
    if name not in with_logs:
        raise CommandError(
            f"job {name!r} makes its panes from streams, not by agents; those with logs= are: "
            f"{', '.join(with_logs)}"
        )
    if node not in jobs[name].nodes:
        raise CommandError(
            f"job {name!r} has no node {node!r}; {did_you_mean(node, jobs[name].nodes)}"
        )
    return jobs[name]
