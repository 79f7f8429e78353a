"""`millstream deadletters`: what could not be processed, and why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import click

from millstream.cli.progress import moment
from millstream.cli.slates import as_json
from millstream.cli.store import chosen_store, store_options
from millstream.nearest import nearest

VALUE_WIDTH = 200
"""Characters of a value that the readable list shows."""


@click.command()
@store_options
@click.option("--function", metavar="NAME", help="Only those of this map or update.")
@click.option(
    "--limit", type=click.IntRange(1), default=50, show_default=True, help="How many to print."
)
@click.option("--json", "as_lines", is_flag=True, help="One JSON object a line, whole.")
def deadletters(
    store: Path | None, app: str | None, function: str | None, limit: int, as_lines: bool
) -> None:
    """Show the events that failed: the error, the user's line, the key and the value.

    Nothing of a failed event reached a slate or a stream.

    \b
    Examples:
        millstream deadletters
        millstream deadletters --function count --json | jq .error
    """
    failed: set[str] = set()
    rows = _chosen(_rows(chosen_store(store, app)), function, failed)
    shown = 0
    for row in islice(rows, limit):
        click.echo(as_json(row) if as_lines else readable(row))
        shown += 1
    if not shown:
        of = f" of {function!r}{_hint(function, failed)}" if function else ""
        click.echo(f"no dead letters{of}", err=True)
    elif next(rows, None) is not None:
        click.echo(f"... and more: raise --limit above {limit}", err=True)


def _rows(store: Path) -> Iterable[Mapping[str, Any]]:
    from millstream.sinks.log_sink import read_log_rows
    from millstream.stores.home import log_of

    return read_log_rows(log_of(store, "deadletters"))


def _chosen(
    rows: Iterable[Mapping[str, Any]], function: str | None, failed: set[str]
) -> Iterator[Mapping[str, Any]]:
    """The rows of a function; `failed` gets the names of all that come by."""
    for row in rows:
        if row.get("function"):
            failed.add(row["function"])
        if function is None or row.get("function") == function:
            yield row


def _hint(function: str, failed: set[str]) -> str:
    near = nearest(function, sorted(failed))
    if near is not None:
        return f"; did you mean {near!r}?"
    return f"; there are some of: {', '.join(sorted(failed))}" if failed else ""


def readable(row: Mapping[str, Any]) -> str:
    """A dead letter in a few lines."""
    what = row.get("function") or "(no function: the record is not an event)"
    if row.get("timer") is not None:
        what += f", timer {row['timer']!r}"
    head = [f"batch {row.get('batch')}: {what}"]
    if row.get("stream"):
        head.append(f"stream {row['stream']}")
    head.append(f"key {row.get('key')!r}")
    if row.get("ts") is not None:
        head.append(moment(row["ts"]))
    file, line = row.get("file"), row.get("line")
    place = f" ({file}:{line})" if file and line else f" ({file})" if file else ""
    value = as_json(row.get("value"))
    if len(value) > VALUE_WIDTH:
        value = value[: VALUE_WIDTH - 3] + "..."
    return f"{', '.join(head)}\n  {row.get('error')}{place}\n  value {value}"
