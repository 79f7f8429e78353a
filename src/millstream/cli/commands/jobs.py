"""`millstream jobs`: lists jobs over windows, and shows the scoreboard of one, in the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import click
import msgspec
from msgspec import structs

from millstream.cli.commands.slates import as_json
from millstream.cli.progress import moment
from millstream.cli.store import chosen_store, store_options
from millstream.cli.which_server import asks_server, open_wire, url_instead_options
from millstream.counted_nouns import counted
from millstream.errors import CommandError
from millstream.messages.jobs import JobAnswer, JobsAnswer, JobWindow, PaneCell
from millstream.nearest import did_you_mean

MARKS = {"empty": ".", "lost": "x", "missing": "-", "awaited": "?"}
LEGEND = (
    "1-9 records, as a part of the most   . nothing   x lost   ! bytes of the log are gone   "
    "- closed without it   ? awaited   = the log has ended"
)
MOST_NAMED = 10
MOST_CLOSED = 10


@click.command()
@click.argument("name", required=False)
@store_options
@url_instead_options
@click.option("--json", "as_lines", is_flag=True, help="Print everything as JSON.")
def jobs(
    name: str | None,
    store: str | None,
    app: str | None,
    url: str | None,
    token_file: Path | None,
    as_lines: bool,
) -> None:
    """List the jobs over windows; or show one, NAME: its scoreboard, its windows, its accounts.

    \b
    Examples:
        millstream jobs
        millstream jobs errors
        millstream jobs errors --url http://127.0.0.1:8470 --json | jq .totals
    """
    if asks_server(url, store, app, token_file):
        views = _served(url, token_file)
    else:
        with chosen_store(store, app) as folder:
            views = _stored(folder)
    if name is not None and name not in views:
        hint = did_you_mean(name, views) if views else "the application has none"
        raise CommandError(f"there is no job {name!r}; {hint}")
    chosen = views.values() if name is None else [views[name]]
    if not views:
        click.echo("no jobs", err=True)
    for view in chosen:
        if as_lines:
            click.echo(as_json(msgspec.to_builtins(view)))
        elif name is None:
            click.echo(one_line(view))
        else:
            click.echo("\n".join(board(view)))


def _stored(store: Path) -> dict[str, JobAnswer]:
    from millstream.description import read_description
    from millstream.server.jobs.job_tables import read_jobs
    from millstream.stores.reader import SlateReader

    description = read_description(store)
    with SlateReader(store) as reader:
        return {} if description is None else {**read_jobs(reader, description.parts)}


def _served(url: str | None, token_file: Path | None) -> dict[str, JobAnswer]:
    with open_wire(url, token_file) as wire:
        listed = wire.decoded(wire.ask("/jobs").content, JobsAnswer).jobs
        return {
            name: wire.decoded(wire.ask(f"/jobs/{quote(name, safe='')}").content, JobAnswer)
            for name in listed
        }


def one_line(view: JobAnswer) -> str:
    totals = view.totals
    origin = "panes from agents" if view.agents else "panes made on Spark"
    counts = [f"{view.open:,} open", f"{view.closed:,} closed"]
    counts += [f"{totals.read:,} read", f"residual {totals.residual:,}"]
    return f"{view.name}: {counted(len(view.nodes), 'node')}, {origin}: {', '.join(counts)}"


def board(view: JobAnswer) -> Iterator[str]:
    """Yields a job in lines: the scoreboard, the windows, the accounts."""
    yield one_line(view)
    if view.panes:
        yield ""
        yield from _scoreboard(view)
    windows = view.windows
    if windows:
        closed = [window for window in windows if window.state == "closed"][-MOST_CLOSED:]
        yield ""
        yield from _columns(
            ["window", "", "area", "time", "space", "records", "records %", "bytes %", "missing"],
            [_window(view, window) for window in windows if _is_shown(window, closed)],
            texts=2,
        )
    yield ""
    accounts = {**view.accounts, "all": view.totals}
    yield from _columns(
        ["node", "read", "on time", "late", "shed", "dead", "residual", "gaps", "misdated"],
        [
            [node, *(f"{count:,}" for count in structs.astuple(counts))]
            for node, counts in accounts.items()
        ],
        texts=1,
    )
    if view.ended:
        yield from ("", _ended(view))
    for warning in view.warnings:
        yield f"warning: {warning}"


def _is_shown(window: JobWindow, closed: list[JobWindow]) -> bool:
    return window.state == "open" or window in closed


def _ended(view: JobAnswer) -> str:
    """Names the first few logs that have ended, and their ends."""
    ended = view.ended
    named = [
        f"{node}, empty" if end is None else f"{node} at {_at(view, end)}"
        for node, end in [*ended.items()][:MOST_NAMED]
    ]
    more = f" and {len(ended) - MOST_NAMED:,} more" if len(ended) > MOST_NAMED else ""
    return f"ended: {', '.join(named)}{more}"


def _scoreboard(view: JobAnswer) -> Iterator[str]:
    panes = view.panes
    width = max(len(node) for node in view.nodes)
    most = max((cell.records for pane in panes for cell in pane.nodes.values()), default=0)
    for node in view.nodes:
        cells = "".join(
            ("|" if pane.start % view.slide == 0 else "") + _sign(pane.nodes[node], most)
            for pane in panes
        )
        yield f"{node:<{width}}  {cells}"
    yield f"{'':<{width}}  from {_at(view, panes[0].start)} to {_at(view, panes[-1].to)}"
    yield f"{'':<{width}}  {LEGEND}"


def _sign(cell: PaneCell, most: int) -> str:
    if cell.gap:
        return "!"
    if cell.why == "over":
        return "="
    if cell.mark == "data":
        return str(-(-9 * cell.records // most))
    return MARKS[cell.mark]


def _window(view: JobAnswer, window: JobWindow) -> list[str]:
    coverage, complete = window.coverage, window.completeness
    return [
        f"{_at(view, window.start)} to {_at(view, window.to)}",
        "open" if window.state == "open" else f"closed: {window.why}",
        *(_percent(part) for part in (coverage.area, coverage.time, coverage.space)),
        f"{window.account.on_time:,}",
        _percent(complete.records),
        _percent(complete.bytes),
        ", ".join(f"{panes:,} {cause}" for cause, panes in coverage.missing.items()) or "-",
    ]


def _percent(part: float | None) -> str:
    return "-" if part is None else f"{int(1000 * part + 1e-6) / 10:g} %"


def _at(view: JobAnswer, position: int) -> str:
    return moment(position) if view.axis == "time" else f"{position:,}"


def _columns(heads: list[str], rows: list[list[str]], texts: int) -> Iterator[str]:
    """Yields aligned rows under their heads; the first `texts` columns are text, others numbers."""
    lines = [heads, *rows]
    widths = [max(len(line[at]) for line in lines) for at in range(len(heads))]
    for line in lines:
        cells = [
            cell.ljust(width) if at < texts else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        yield "  ".join(cells).rstrip()
