"""`millstream tail`: prints the records of a stream as they are appended."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from millstream.cli.commands.slates import as_json
from millstream.cli.which_server import open_client, url_options
from millstream.errors import CommandError

if TYPE_CHECKING:
    from millstream.client import Gap

Start = int | Literal["end", "start"]
WORDS: dict[str, Start] = {"end": "end", "start": "start"}


def _start(ctx: click.Context, param: click.Parameter, given: str) -> Start:
    try:
        return WORDS[given] if given in WORDS else int(given)
    except ValueError:
        raise CommandError(
            f"--from must be end, start, a record's number, or -5 for the last five; got {given!r}"
        ) from None


@click.command()
@click.argument("stream")
@click.option(
    "--from",
    "start",
    default="end",
    show_default=True,
    metavar="end|start|N",
    callback=_start,
    help="The first record to show; -N for N before the end.",
)
@click.option("--limit", type=click.IntRange(1), help="Stop after this many.  [default: never]")
@click.option("--json", "numbered", is_flag=True, help="Print {record, value}, with its number.")
@url_options
def tail(
    stream: str,
    start: Start,
    limit: int | None,
    numbered: bool,
    url: str | None,
    token_file: Path | None,
) -> None:
    """Print the records of a stream as they come, one JSON value a line, until Ctrl-C.

    A source or an output that is kept in a log can be tailed, and so can late and deadletters. The
    server may be restarted meanwhile.

    \b
    Examples:
        millstream tail hot
        millstream tail deadletters --from start | jq .error
        millstream tail checkins --from -10 --limit 10
    """
    from millstream.client import Record

    try:
        with open_client(url, token_file) as client:
            for record in client.tail(stream, start=start, limit=limit):
                if not isinstance(record, Record):
                    click.echo(_gone(record), err=True)
                elif numbered:
                    click.echo(as_json({"record": record.number, "value": record.value}))
                else:
                    click.echo(as_json(record.value))
    except KeyboardInterrupt:
        pass  # the usual end of a tail


def _gone(gap: Gap) -> str:
    if gap.last < gap.first:
        return f"the log was recreated; continuing at record {gap.last + 1}"
    return f"records {gap.first} to {gap.last} are gone: the log's retention has removed them"
