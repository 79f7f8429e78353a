"""`millstream vacuum`: frees the room of expired and deleted data."""

from __future__ import annotations

from pathlib import Path

import click

from millstream.cli.store import named_store, store_options
from millstream.counted_nouns import counted, verb
from millstream.errors import CommandError
from millstream.notices import say


@click.command()
@store_options
@click.option(
    "--older-than",
    metavar="TIME",
    help="Of a shared store: delete only objects older than this.  [default: 1h]",
)
@click.option("--dry-run", is_flag=True, help="Of a shared store: only say what would be deleted.")
def vacuum(store: str | None, app: str | None, older_than: str | None, dry_run: bool) -> None:
    """Delete expired slates and tombstones, and rewrite the store compactly.

    The application must not run meanwhile; a server may. It needs room for the new files beside the
    old. It may be stopped at any moment: the store is then the old one or the new one.

    For a shared store, it deletes objects that no commit names: leftovers of tasks and drivers that
    have ended. The application may run meanwhile.

    \b
    Examples:
        millstream vacuum --store .millstream/retail
        millstream vacuum --store s3://bucket/retail --dry-run
    """
    chosen = named_store(store, app)
    if not isinstance(chosen, Path):
        _sweep(chosen, older_than, dry_run)
        return
    if older_than is not None or dry_run:
        raise CommandError(
            f"--older-than and --dry-run are for a shared store, such as s3://BUCKET/PREFIX; "
            f"{chosen} is a folder"
        )
    _rewrite(chosen)


def _sweep(address: str, older_than: str | None, dry_run: bool) -> None:
    """Deletes the objects that no commit of a shared store names."""
    from millstream.model.duration import microseconds
    from millstream.places.place_address import place_at
    from millstream.stores.shared.place_sweep import HOUR, sweep

    seconds = HOUR if older_than is None else microseconds(older_than, "--older-than") / 1e6
    done = sweep(place_at(address), seconds, dry_run=dry_run, say=say)
    if dry_run:
        for name in done.names:
            click.echo(name)
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in sorted(done.by_kind().items()))
    deleted = "would be deleted" if dry_run else "deleted"
    click.echo(
        f"{counted(len(done.names), 'object')} {deleted} ({kinds or 'none'}), "
        f"{done.bytes:,} bytes; "
        f"{counted(done.kept, 'object')} {verb(done.kept, 'stays', 'stay')}",
        err=dry_run,
    )


def _rewrite(chosen: Path) -> None:
    from millstream.description import read_description
    from millstream.engine.cells.sweep import vacuum_until
    from millstream.engine.horizon import earliest_of
    from millstream.stores.home import Home, held
    from millstream.stores.progress import decoded
    from millstream.stores.vacuum import vacuum as rewrite

    Home.open(chosen)  # before anything is made there
    with held(chosen):
        home = Home.open(chosen)
        progress, description = decoded(home.read_progress()), read_description(chosen)
        ages: dict[str, tuple[int, int]] = {}
        if description is not None:
            until = vacuum_until(description.order, progress, earliest_of(progress))
            for function in description.functions:
                if function.changes:
                    continue  # a sweep publishes the deletions; nobody would learn of these
                if function.ttl is not None and until is not None:
                    ages[function.name] = until, function.ttl
        done = rewrite(home, ages, lambda text: click.echo(text, err=True))
    for update, count in sorted(done.expired.items()):
        if count:
            click.echo(f"{update}: {counted(count, 'expired slate')} deleted")
    stay = sum(done.slates.values())
    click.echo(
        f"{counted(sum(done.expired.values()), 'slate')} and "
        f"{counted(done.tombstones, 'tombstone')} deleted, and {counted(done.files, 'leftover')}; "
        f"{counted(stay, 'slate')} {verb(stay, 'stays', 'stay')}; "
        f"{done.before:,} bytes before, {done.after:,} after"
    )
