"""`millstream vacuum`: give back the room of what is gone."""

from __future__ import annotations

from pathlib import Path

import click

from millstream.cli.store import chosen_store, store_options


@click.command()
@store_options
def vacuum(store: Path | None, app: str | None) -> None:
    """Delete expired slates and tombstones, and rewrite the store compactly.

    Only while the application does not run; a server may. It needs room for the new files beside
    the old. Stop it at any moment: the store is then the old one or the new one.

    \b
    Example:
        millstream vacuum --store .millstream/retail
    """
    from millstream.description import read_description
    from millstream.engine.horizon import earliest_of
    from millstream.engine.sweep import vacuum_until
    from millstream.stores.home import Home, held
    from millstream.stores.progress import decoded
    from millstream.stores.vacuum import vacuum as rewrite

    chosen = chosen_store(store, app)
    Home.open(chosen)  # before anything is made there
    with held(chosen):
        home = Home.open(chosen)
        progress, description = decoded(home.read_progress()), read_description(chosen)
        ages: dict[str, tuple[int, int]] = {}
        if description is not None:
            until = vacuum_until(description.order, progress, earliest_of(progress))
            for function in description.functions:
                if function.ttl is not None and until is not None:
                    ages[function.name] = until, function.ttl
        done = rewrite(home, ages, lambda text: click.echo(text, err=True))
    for update, count in sorted(done.expired.items()):
        if count:
            click.echo(f"{update}: {count:,} expired slates went")
    click.echo(
        f"{sum(done.expired.values()):,} slates and {done.tombstones:,} tombstones went, and "
        f"{done.files:,} leftovers; {sum(done.slates.values()):,} slates stay; "
        f"{done.before:,} bytes before, {done.after:,} after"
    )
