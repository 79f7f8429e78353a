"""`millstream agents`: lists the agents, their parents and their jobs in the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from millstream.cli.commands.slates import as_json
from millstream.cli.which_server import open_wire, url_options
from millstream.counted_nouns import counted
from millstream.trees.messages import AgentRow, AgentsAnswer

ROOT = "(root)"


@click.command()
@url_options
@click.option("--json", "as_lines", is_flag=True, help="One JSON object a line.")
def agents(url: str | None, token_file: Path | None, as_lines: bool) -> None:
    """List the agents that the root has heard from recently, each below its parent.

    A number after a node is the number of its children. HEARD is how long ago the root last heard
    from it; an agent that has been silent for half a minute is no longer listed.

    \b
    Examples:
        millstream agents
        millstream agents --url http://127.0.0.1:8470 --json | jq .node
    """
    with open_wire(url, token_file) as wire:
        rows = wire.decoded(wire.ask("/agents").content, AgentsAnswer).agents
    if not rows:
        click.echo("no agents", err=True)
    elif as_lines:
        for row in rows:
            click.echo(as_json(row))
    else:
        click.echo("\n".join(table(rows)))


def table(rows: list[AgentRow]) -> Iterator[str]:
    """Yields the agents as a tree, in columns."""
    heads = ("NODE", "PARENT", "ADDRESS", "JOBS", "HEARD", "VERSION")
    by_name = {row.node: row for row in rows}
    lines = [heads]
    for row in _in_order(rows, by_name):
        below = f" ({len(row.children):,})" if row.children else ""
        lines.append(
            (
                f"{'  ' * (row.depth - 1)}{row.node}{below}",
                row.parent or ROOT,
                row.address or "-",
                ", ".join(row.jobs) or "-",
                f"{row.heard:.0f} s ago",
                row.version or "-",
            )
        )
    widths = [max(len(line[at]) for line in lines) for at in range(len(heads))]
    for line in lines:
        cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        yield "  ".join(cells).rstrip()
    parents = sum(bool(row.children) for row in rows)
    deepest = max(row.depth for row in rows)
    which = "a parent" if parents == 1 else "parents"
    yield f"{counted(len(rows), 'agent')}, {parents:,} of them {which}, {deepest} deep"


def _in_order(rows: list[AgentRow], by_name: dict[str, AgentRow]) -> Iterator[AgentRow]:
    """Yields each agent, followed by those below it."""
    waiting = [row for row in reversed(rows) if row.parent not in by_name]
    while waiting:
        row = waiting.pop()
        yield row
        waiting += [by_name[child] for child in reversed(row.children) if child in by_name]
