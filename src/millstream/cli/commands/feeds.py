"""`millstream feeds`: reads feeds, follows, posts, and verifies that feeds are correct."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from millstream.cli.commands.slates import as_json
from millstream.cli.progress import moment
from millstream.cli.store import chosen_store, store_options
from millstream.cli.which_server import asks_server, open_client, url_instead_options, url_options
from millstream.counted_nouns import counted
from millstream.errors import CommandError
from millstream.wall_clock import wall_clock

if TYPE_CHECKING:
    from millstream.client import FeedsClient
    from millstream.client.client import Client
    from millstream.messages.feeds import FeedNetwork, FeedPart, Item

NAMED = click.option("--feeds", "name", metavar="NAME", help="Which feeds, if there are several.")
MOST_SHOWN = 20
"""The most differences of one consumer that are shown; `--json` shows all."""


@click.group()
def feeds() -> None:
    """Read feeds, follow and post; and verify that feeds are correct.

    \b
    Examples:
        millstream feeds follow xena ann
        millstream feeds post ann '{"text": "hello"}'
        millstream feeds show xena
        millstream feeds network
        millstream feeds verify --store .millstream/social --sample 1000
    """


def _with_feeds(command: Callable[..., None]) -> Callable[..., None]:
    """Gives a command the feeds of the server that `--url` and `--feeds` name."""

    @url_options
    @NAMED
    @wraps(command)
    def run(url: str | None, token_file: Path | None, name: str | None, **given: Any) -> None:
        with open_client(url, token_file) as client:
            command(_feeds(client, name), **given)

    return run


@feeds.command()
@click.argument("consumer")
@store_options
@url_instead_options
@NAMED
@click.option("--limit", type=click.IntRange(1), help="The most items of the page.")
@click.option("--cursor", help="Where to start: the next or previous cursor of another page.")
@click.option("--coherency", type=click.Choice(["global", "per-producer"]))
@click.option("--why", is_flag=True, help="Show why each item was pushed or pulled.")
@click.option("--json", "as_lines", is_flag=True, help="Print the server's whole answer as JSON.")
def show(
    consumer: str,
    store: str | None,
    app: str | None,
    url: str | None,
    token_file: Path | None,
    name: str | None,
    limit: int | None,
    cursor: str | None,
    coherency: str | None,
    why: bool,
    as_lines: bool,
) -> None:
    """Show the feed of CONSUMER, newest first, from the store or from a server.

    Only a server also shows records that it has acknowledged and the application has not processed
    yet. This command does not count as a view of the feed.

    \b
    Examples:
        millstream feeds show xena
        millstream feeds show xena --limit 5 --why --url http://127.0.0.1:8470
    """
    if asks_server(url, store, app, token_file):
        with open_client(url, token_file) as client:
            page: FeedPart = _feeds(client, name).read(
                consumer, limit=limit, cursor=cursor, coherency=coherency, why=why, view=False
            )
            whole = msgspec.to_builtins(page)
    else:
        from millstream.cli.stored_feeds import page_of

        options = {"limit": limit, "cursor": cursor, "coherency": coherency, "why": int(why)}
        query = {option: str(value) for option, value in options.items() if value is not None}
        now = wall_clock()
        with chosen_store(store, app) as chosen:
            page, batch = page_of(chosen, name, consumer, query, now)
        whole = {**msgspec.to_builtins(page), "batch": batch}
    if as_lines:
        click.echo(as_json(whole))
    else:
        for item in page.items:
            click.echo(one_item(item))
        if page.next:
            click.echo(f"older: --cursor {page.next}", err=True)
        if not page.complete:
            click.echo(f"not complete: {as_json(msgspec.to_builtins(page.left_out))}", err=True)


def one_item(item: Item) -> str:
    """Formats an item in one line: time, producer, id, pushed or pulled, and value."""
    words = [moment(item.ts), item.producer, item.id, item.how]
    words += ["edited"] if item.edited is not None else []
    words += [f"via {item.via}"] if item.via else []
    words += [as_json(msgspec.to_builtins(item.why))] if item.why else []
    return f"{'  '.join(words)}  {as_json(item.value)}"


@feeds.command()
@click.argument("consumer")
@click.argument("producer")
@_with_feeds
def follow(client: FeedsClient, consumer: str, producer: str) -> None:
    """Let CONSUMER follow PRODUCER."""
    client.follow(consumer, producer)
    click.echo(f"{consumer} follows {producer}")


@feeds.command()
@click.argument("consumer")
@click.argument("producer")
@_with_feeds
def unfollow(client: FeedsClient, consumer: str, producer: str) -> None:
    """Let CONSUMER no longer follow PRODUCER: its posts leave the feed at once."""
    client.unfollow(consumer, producer)
    click.echo(f"{consumer} does not follow {producer}")


@feeds.command()
@click.argument("consumer")
@click.argument("producer")
@click.option("--undo", is_flag=True, help="Unblock: PRODUCER may be followed again.")
@_with_feeds
def block(client: FeedsClient, consumer: str, producer: str, undo: bool) -> None:
    """Let CONSUMER neither see anything of PRODUCER nor follow it."""
    change = client.unblock if undo else client.block
    change(consumer, producer)
    click.echo(f"{consumer} {'does not block' if undo else 'blocks'} {producer}")


@feeds.command()
@click.argument("producer")
@click.argument("value")
@click.option("--id", "post_id", metavar="ID", help="Its id.  [default: the server makes one]")
@_with_feeds
def post(client: FeedsClient, producer: str, value: str, post_id: str | None) -> None:
    """Post VALUE, JSON or plain text, for PRODUCER; prints its id.

    \b
    Examples:
        millstream feeds post ann hello
        millstream feeds post ann '{"text": "hello"}' --id first
    """
    click.echo(client.post(producer, _value(value), id=post_id))


@feeds.command()
@click.argument("producer")
@click.argument("post_id", metavar="ID")
@_with_feeds
def delete(client: FeedsClient, producer: str, post_id: str) -> None:
    """Delete the post ID of PRODUCER: it leaves all feeds at once."""
    client.delete(producer, post_id)
    click.echo(f"{producer}: {post_id} is deleted")


@feeds.command()
@url_options
@click.option("--json", "as_lines", is_flag=True, help="Print everything as JSON.")
def network(url: str | None, token_file: Path | None, as_lines: bool) -> None:
    """Show how many pairs are pushed and pulled, and what that costs."""
    with open_client(url, token_file) as client:
        networks = client.feeds.network()
    if as_lines:
        click.echo(as_json(msgspec.to_builtins(networks)))
        return
    if not networks:
        click.echo("no feeds", err=True)
    for name, figures in networks.items():
        click.echo(one_line(name, figures))


def one_line(name: str, network: FeedNetwork) -> str:
    counts = [counted(network.producers, "producer"), counted(network.consumers, "consumer")]
    counts += [counted(network.pairs, "pair")]
    counts += [f"{network.pushed:,} pushed", f"{network.pulled:,} pulled"]
    counts += [f"{network.under_way:,} under way"] if network.under_way else []
    costs = [
        f"a {move} costs {1e6 * cost:,.0f} µs"
        for move, cost in (("push", network.high), ("pull", network.low))
        if cost is not None
    ]
    costs += [f"ratio {network.ratio:.3g}"]
    return f"{name}: {network.coherency} coherency: {', '.join(counts)}; {', '.join(costs)}"


@feeds.command()
@store_options
@click.option("--url", metavar="URL", help="Also read the same feeds from this server.")
@click.option(
    "--token-file", type=click.Path(path_type=Path), help="A file with the server's token."
)
@NAMED
@click.option(
    "--sample", type=click.IntRange(1), help="The number of random consumers.  [default: 1000]"
)
@click.option("--all", "everyone", is_flag=True, help="All consumers.")
@click.option("--seed", type=int, default=0, show_default=True, help="The seed of the sample.")
@click.option("--json", "as_lines", is_flag=True, help="Print each difference as a line of JSON.")
@click.pass_context
def verify(
    ctx: click.Context,
    store: str | None,
    app: str | None,
    url: str | None,
    token_file: Path | None,
    name: str | None,
    sample: int | None,
    everyone: bool,
    seed: int,
    as_lines: bool,
) -> None:
    """Compare feeds with a brute-force query over all posts; exit 1 if anything differs.

    Reads each consumer's whole feed, by pages in both directions, as of one committed batch, and
    checks the tables that it is made from. Changes nothing; the application may run meanwhile. With
    --url the same feeds are also read from a server, if no record is on its way to the application;
    if no feed could be compared in this way, the command also exits with 1.

    \b
    Examples:
        millstream feeds verify --store .millstream/social --all
        millstream feeds verify --sample 200 --seed 7 --url http://127.0.0.1:8470
    """
    if sample is not None and everyone:
        raise CommandError("say --sample or --all, not both")
    from millstream.cli.verify_feeds import Verifying

    client = None if url is None else open_client(url, token_file)
    with chosen_store(store, app) as chosen:
        run = Verifying(chosen, name, client)
        count = None if everyone else sample or 1_000
        for verified in run.consumers(count, seed):
            records = [difference.record() for difference in verified.differences]
            lines = [*map(as_json, records)] if as_lines else [*map(str, verified.differences)]
            for line in lines if as_lines else lines[:MOST_SHOWN]:
                click.echo(line)
            if len(lines) > MOST_SHOWN and not as_lines:
                more = len(lines) - MOST_SHOWN
                click.echo(f"consumer {verified.consumer!r}: ... and {more:,} more differences")
    click.echo(run.words(), err=as_lines)
    ctx.exit(1 if run.differences or run.compared_none else 0)


def _feeds(client: Client, name: str | None) -> FeedsClient:
    return client.feeds if name is None else client.feeds.named(name)


def _value(text: str) -> Any:
    """Returns the value of a post: parsed JSON if the text is JSON, else the text itself."""
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text
