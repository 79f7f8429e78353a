"""`millstream run`: run an application on Spark; `run_app` does the same for `app.run()`."""

from __future__ import annotations

import os
from typing import Any

import click

from millstream.actions.address import addresses_of
from millstream.cli.check import checked
from millstream.cli.failing import tell_in_one_line
from millstream.cli.place_options import place_options
from millstream.cli.progress import end_hints, say, summary
from millstream.cli.running import run_served
from millstream.cli.serving_options import serving_options
from millstream.config import load
from millstream.errors import CommandError, DefinitionError, MillstreamError
from millstream.model.app import App
from millstream.model.place import shown_path
from millstream.modules import being_loaded
from millstream.setting_values import LANES
from millstream.settings import Settings, resolve


def _limits(
    ctx: click.Context, param: click.Parameter, given: tuple[str, ...]
) -> dict[str, str] | None:
    """`UPDATE=N`, repeated, as a mapping."""
    limits = {}
    for text in given:
        name, equals, number = text.partition("=")
        if not (name and equals and number):
            raise CommandError(f"--limit must be UPDATE=N, as in --limit count=1000; got {text!r}")
        limits[name] = number
    return limits or None


@click.command()
@click.argument("app")
@place_options
@click.option("--available-now", is_flag=True, default=None, help="Process what is there and stop.")
@click.option(
    "--final",
    is_flag=True,
    default=None,
    help="The same, and end event time: waiting events are processed, event-time timers fire.",
)
@click.option("--shards", metavar="N", help="Shards of the store, fixed once made.  [default: 16]")
@click.option("--tasks", metavar="N", help="Tasks at once.  [default: the number of cores]")
@click.option("--batch-bytes", metavar="SIZE", help="Most input of one batch.  [default: 32MiB]")
@click.option(
    "--batch-seconds", metavar="TIME", help="How long a batch is to take, about.  [default: 2s]"
)
@click.option(
    "--limit",
    "limits",
    multiple=True,
    metavar="UPDATE=N",
    callback=_limits,
    help="How many events each shard of an update takes in a batch. Repeatable.",
)
@click.option("--lane", type=click.Choice(LANES), help="How batches run.  [default: auto]")
@click.option("--slate-warn", metavar="SIZE", help="Warn of slates over it.  [default: 1MiB]")
@click.option("--slate-limit", metavar="SIZE", help="The most a slate may have.  [default: 16MiB]")
@click.option("--flush", metavar="TIME", help="Flush so often, not every batch.  [default: batch]")
@click.option("--sink-patience", metavar="TIME", help="Try a failing sink so long.  [default: 10m]")
@click.option("--master", help="Spark's master.  [default: local[*]]")
@click.option("--memory", metavar="SIZE", help="Memory of Spark's driver.  [default: 1g]")
@click.option("--package", metavar="FILE", help="Code of its jobs, for agents: see `pack`.")
@click.option(
    "--serve/--no-serve",
    default=None,
    help="A live page and HTTP beside it.  [default: unless it is to stop by itself]",
)
@serving_options
def run(app: str, **flags: Any) -> None:
    """Run an application on Spark until Ctrl-C, or until the input ends.

    Started again, it goes on where it was: nothing is lost, nothing counted twice. While it runs,
    a live page shows it, events can be sent to it and slates read over HTTP; a source without an
    address takes what is sent.

    With --final nothing is to come: when all input is processed, open sessions and windows come
    out. In event-time order an event that comes after that with a time before the end is late.

    \b
    Examples:
        millstream run app.py
        millstream run app.py --source checkins=json:data/checkins --available-now
        millstream run sessions.py --source clicks=json:clicks --available-now --final
        millstream run app.toml
        millstream run app.py --source checkins=json:in --sink hot=parquet:out

    A setting may also be in the TOML file, or a variable: MILLSTREAM_STORE, MILLSTREAM_SHARDS,
    MILLSTREAM_SOURCE_CHECKINS, ... Flags win.
    """
    target = load(app)
    settings = resolve(target.app, target.toml, os.environ, flags)
    if settings.package is not None:
        from millstream.cli.packaged import check_current

        check_current(app, settings.package)
    _run(target.app, settings)


def run_app(app: App, settings: dict[str, Any]) -> None:
    """Run an application from a script; `settings` are the weakest, as code is."""
    loading = being_loaded()
    if loading is not None:
        raise DefinitionError(
            f"app.run() was called while {loading} was being loaded; "
            "put it under if __name__ == '__main__':"
        )
    try:
        _run(app, resolve(app, environ=os.environ, code=settings))
    except MillstreamError as error:
        tell_in_one_line(error)
        raise


def _run(app: App, settings: Settings) -> None:
    """Run, and show it; the only place that loads Spark."""
    addresses_of(app.name, checked(app).actions, settings.actions)
    say(f"app {app.name}, store {shown_path(settings.store)}, starting Spark ...")
    result = run_served(app, settings)
    say(f"{summary(result)}; store {shown_path(settings.store)}")
    for hint in end_hints(result, final=settings.final) if settings.available_now else ():
        say(hint)
    if result.dead_letters:
        say(f"see what failed: millstream deadletters --store {shown_path(settings.store)}")
