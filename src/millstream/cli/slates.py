"""`millstream slates`: read slates while they change, always as of one committed batch.

From the store itself, where it is; over HTTP, from anywhere, with `--url`.
"""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from millstream.cli.store import chosen_store, store_options
from millstream.cli.which_server import open_client, url_instead_options, url_options
from millstream.errors import CommandError, DefinitionError
from millstream.nearest import did_you_mean

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
    store: Path | None,
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
    found: StoredSlate | Slate | None
    if _over_http(url, token_file, store, app):
        with open_client(url, token_file) as client:
            found = client.get(update, key)
    else:
        with open_reader(chosen_store(store, app), update) as reader:
            found = reader.get(update, key)
    if found is None:
        click.echo(f"update {update!r} has no slate for key {key!r}", err=True)
        ctx.exit(1)
    click.echo(as_json(found.value))


@slates.command()
@click.argument("update")
@store_options
@url_instead_options
@click.option("--prefix", default="", help="Only keys that begin so.")
@click.option("--after", metavar="KEY", help="Only keys after this one: the last of a page before.")
@click.option("--limit", type=click.IntRange(1), default=100, show_default=True)
def scan(
    update: str,
    store: Path | None,
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
    if _over_http(url, token_file, store, app):
        with open_client(url, token_file) as client:
            for found in client.scan(update, prefix=prefix, after=after, limit=limit):
                click.echo(as_json(record(found)))
        return
    with open_reader(chosen_store(store, app), update) as reader:
        for slate in reader.scan(update, prefix=prefix, after=after, limit=limit):
            click.echo(as_json(record(slate)))


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
    help="In parallel, in parts, or not.  [default: if the store has over 256 MiB]",
)
def dump(
    update: str, store: Path | None, app: str | None, to: str, overwrite: bool, spark: bool | None
) -> None:
    """Write every slate of an update to a file, as of one committed batch.

    A large store is read in parallel, through Spark, into a directory of part files; each of them
    is in key order.

    \b
    Examples:
        millstream slates dump count --to parquet:counts
        millstream slates dump count --to jsonl:counts.jsonl
    """
    from millstream.cli.dump import destination, is_large, write, write_parts

    place, chosen = destination(to, update, overwrite), chosen_store(store, app)
    with open_reader(chosen, update) as reader:
        if spark is None:
            spark = place.folder is not None and is_large(chosen)
        if not spark:
            count = write(reader.scan(update), place)
            click.echo(f"wrote {_counted(count, 'slate')} to {place.file}", err=True)
            return
    dumped = write_parts(chosen, update, place)
    wrote, parts = _counted(dumped.slates, "slate"), _counted(dumped.parts, "part")
    click.echo(f"wrote {wrote} to {place.folder} ({parts})", err=True)


@slates.command()
@click.argument("update")
@click.argument("key")
@url_options
@click.option("--limit", type=click.IntRange(1), help="Stop after so many.  [default: never]")
def watch(
    update: str, key: str, url: str | None, token_file: Path | None, limit: int | None
) -> None:
    """Print the slate of KEY now and whenever it changes, one JSON object a line, until Ctrl-C.

    It comes from a server, which may be restarted meanwhile. Where there is no slate, null stands
    for it.

    \b
    Example:
        millstream slates watch count Walmart
    """
    try:
        with open_client(url, token_file) as client:
            for found in islice(client.watch(update, key), limit):
                none = {"key": key, "slate": None, "ts": None}
                click.echo(as_json(none if found is None else record(found)))
    except KeyboardInterrupt:
        pass  # how a watch ends


def _over_http(url: str | None, token: Path | None, store: Path | None, app: str | None) -> bool:
    """Whether to ask a server, which only `--url` says: a store needs none."""
    if url is not None and (store is not None or app is not None):
        raise CommandError("name a server with --url, or a store with --store or --app, not both")
    if url is None and token is not None:
        raise CommandError("--token-file is for a server; name it with --url")
    return url is not None


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def open_reader(store: Path, update: str) -> SlateReader:
    """A reader of a store that has slates of `update`."""
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
    """A slate as one line of output."""
    return {"key": slate.key, "slate": slate.value, "ts": slate.ts}


def as_json(value: Any) -> str:
    """JSON text; bytes, which JSON cannot carry, become base64."""
    return msgspec.json.encode(value).decode()
