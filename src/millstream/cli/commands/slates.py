"""`millstream slates`: reads slates while they change, always as of one committed batch.

It reads the store itself or, with `--url`, a server over HTTP from anywhere.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from millstream.cli.store import chosen_store, store_options
from millstream.cli.which_server import asks_server, open_client, url_instead_options, url_options
from millstream.counted_nouns import counted
from millstream.errors import DefinitionError
from millstream.nearest import did_you_mean
from millstream.notices import say

if TYPE_CHECKING:
    from millstream.client import Slate
    from millstream.stores.reader import SlateReader, StoredSlate


@click.group()
def slates() -> None:
    """Read slates: one, a range, or all of them, or each change of one.

    \b
    Examples:
        millstream slates get count Walmart
        millstream slates scan count --prefix W --limit 10
        millstream slates dump count --to parquet:counts
        millstream slates watch count Walmart
    """


@slates.command()
@click.argument("update")
@click.argument("key")
@store_options
@url_instead_options
@click.pass_context
def get(
    ctx: click.Context,
    update: str,
    key: str,
    store: str | None,
    app: str | None,
    url: str | None,
    token_file: Path | None,
) -> None:
    """Print the slate of KEY as JSON; exit 1 if there is none.

    \b
    Examples:
        millstream slates get count Walmart
        millstream slates get count Walmart --url http://127.0.0.1:8470
    """
    slate: StoredSlate | Slate | None
    if asks_server(url, store, app, token_file):
        with open_client(url, token_file) as client:
            slate = client.get(update, key)
    else:
        with chosen_store(store, app) as chosen, open_reader(chosen, update) as reader:
            slate = reader.get(update, key)
    if slate is None:
        click.echo(f"update {update!r} has no slate for key {key!r}", err=True)
        ctx.exit(1)
    click.echo(as_json(slate.value))


@slates.command()
@click.argument("update")
@store_options
@url_instead_options
@click.option("--prefix", default="", help="Only keys that begin with this.")
@click.option("--after", metavar="KEY", help="Only keys after this one, the last of the last page.")
@click.option(
    "--limit", type=click.IntRange(1), default=100, show_default=True, help="At most this many."
)
def scan(
    update: str,
    store: str | None,
    app: str | None,
    url: str | None,
    token_file: Path | None,
    prefix: str,
    after: str | None,
    limit: int,
) -> None:
    """Print slates in key order, one JSON object a line.

    \b
    Example:
        millstream slates scan count --prefix W --limit 10
    """
    if asks_server(url, store, app, token_file):
        with open_client(url, token_file) as client:
            _show(client.scan(update, prefix=prefix, after=after, limit=limit + 1), limit)
        return
    with chosen_store(store, app) as chosen, open_reader(chosen, update) as reader:
        _show(reader.scan(update, prefix=prefix, after=after, limit=limit + 1), limit)


def _show(slates: Iterable[StoredSlate | Slate], limit: int) -> None:
    """Prints at most `limit` slates, and a message if there are more."""
    last = ""
    for number, slate in enumerate(slates):
        if number == limit:
            say(f"there are more: go on with --after {last!r}, or give a higher --limit")
        else:
            click.echo(as_json(record(slate)))
            last = slate.key


@slates.command()
@click.argument("update")
@store_options
@click.option(
    "--to", required=True, metavar="FORMAT:PATH", help="parquet:DIR, jsonl:DIR or jsonl:FILE.jsonl"
)
@click.option("--overwrite", is_flag=True, help="Replace an earlier dump.")
@click.option(
    "--spark/--no-spark",
    default=None,
    help="Write parts in parallel through Spark.  [default: if the store has over 256 MiB]",
)
def dump(
    update: str, store: str | None, app: str | None, to: str, overwrite: bool, spark: bool | None
) -> None:
    """Write every slate of an update to a file, as of one committed batch.

    In Parquet, slates of a dataclass have a column for each field, and others are JSON text, as
    with parquet:DIR?columns=json.

    A large store is read in parallel, through Spark, into a directory of part files; each of them
    is in key order.

    \b
    Examples:
        millstream slates dump count --to parquet:counts
        millstream slates dump count --to jsonl:counts.jsonl
    """
    from millstream.cli.dump import destination, is_large, record_of, write, write_parts

    place = destination(to, update, overwrite)
    with chosen_store(store, app) as chosen:
        with open_reader(chosen, update) as reader:
            if spark is None:
                spark = place.folder is not None and is_large(chosen)
            if not spark:
                count = write(reader.scan(update), place, record_of(chosen, update, place))
                click.echo(f"wrote {counted(count, 'slate')} to {place.file}", err=True)
                return
        dumped = write_parts(chosen, update, place)
    wrote, parts = counted(dumped.slates, "slate"), counted(dumped.parts, "part")
    click.echo(f"wrote {wrote} to {place.folder} ({parts})", err=True)


@slates.command()
@click.argument("update")
@click.argument("key")
@url_options
@click.option("--limit", type=click.IntRange(1), help="Stop after this many.  [default: never]")
def watch(
    update: str, key: str, url: str | None, token_file: Path | None, limit: int | None
) -> None:
    """Print the slate of KEY now and whenever it changes, one JSON object a line, until Ctrl-C.

    It is read from a server, which may be restarted meanwhile. If there is no slate, null is
    printed in its place.

    \b
    Example:
        millstream slates watch count Walmart
    """
    try:
        with open_client(url, token_file) as client:
            for slate in islice(client.watch(update, key), limit):
                none = {"key": key, "slate": None, "ts": None}
                click.echo(as_json(none if slate is None else record(slate)))
    except KeyboardInterrupt:
        pass  # the usual end of a watch


def open_reader(store: Path, update: str) -> SlateReader:
    """Opens a reader of a store; DefinitionError if the store has no slates of `update`."""
    from millstream.stores.reader import SlateReader

    reader = SlateReader(store)
    if update not in reader.updates:
        with reader:
            known = reader.updates
        raise DefinitionError(
            f"store {store} has no slates of update {update!r}; {did_you_mean(update, known)}"
        )
    return reader


def record(slate: StoredSlate | Slate) -> dict[str, Any]:
    """Returns a slate as the object of one output line."""
    return {"key": slate.key, "slate": slate.value, "ts": slate.ts}


def as_json(value: Any) -> str:
    """Returns JSON text; bytes, which JSON cannot carry, become base64."""
    return msgspec.json.encode(value).decode()
