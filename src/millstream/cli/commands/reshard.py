"""`millstream reshard`: changes the number of shards of a store."""

from __future__ import annotations

import click

from millstream.cli.store import named_store, store_options
from millstream.counted_nouns import counted


@click.command()
@click.argument("shards", type=click.IntRange(1, 1024))
@store_options
def reshard(shards: int, store: str | None, app: str | None) -> None:
    """Change the number of shards of a store to SHARDS.

    The application must not run meanwhile; a server may. It needs room for the new files beside the
    old; for a shared store, on this host. It may be stopped at any moment, and continues where it
    was when it is started again; until it is done, the store is unchanged.

    \b
    Examples:
        millstream reshard 64 --store .millstream/retail
        millstream reshard 256 --store s3://bucket/retail
    """
    from millstream.driver.maintenance.resharding import reshard as rewrite
    from millstream.driver.maintenance.shared_resharding import reshard_shared
    from millstream.places.place_address import place_at
    from millstream.stores.home import Home, held

    def say(text: str) -> None:
        click.echo(text, err=True)

    chosen = named_store(store, app)
    if isinstance(chosen, str):
        before = reshard_shared(place_at(chosen), shards, say)
    else:
        Home.open(chosen)  # before anything is made there
        with held(chosen):
            home = Home.open(chosen)
            before = home.facts.shards
            rewrite(home, shards, say)
    click.echo(f"{counted(before, 'shard')} before, {shards} now")
