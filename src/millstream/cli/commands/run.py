"""`millstream run`: runs an application on Spark; `run_app` does the same for `app.run()`."""

from __future__ import annotations

import os
import sys
from typing import Any

import click

from millstream.actions.address import addresses_of
from millstream.cli.cluster_flags import cluster_options
from millstream.cli.commands.check import checked
from millstream.cli.error_exit import tell_in_one_line
from millstream.cli.option_groups import pairs
from millstream.cli.place_options import accept_loss, place_options
from millstream.cli.progress import end_hints, summary
from millstream.cli.runtime import with_runtime
from millstream.cli.serving_options import serving_options
from millstream.cli.spark_run import run_served
from millstream.config import load
from millstream.errors import DefinitionError, MillstreamError, RunError
from millstream.model.app import AppDefinition
from millstream.modules import being_loaded
from millstream.notices import say
from millstream.settings.setting_values import LANES
from millstream.settings.settings import Settings, resolve


@click.command()
@click.argument("app")
@cluster_options
@place_options
@click.option(
    "--available-now", is_flag=True, default=None, help="Process the available input and stop."
)
@click.option(
    "--final",
    is_flag=True,
    default=None,
    help="The same, and end event time: waiting events are processed, event-time timers fire.",
)
@click.option(
    "--shards",
    metavar="N",
    help="The shards of a new store; see `millstream reshard`.  [default: 16; 64 if shared]",
)
@click.option("--tasks", metavar="N", help="Parallel tasks.  [default: the number of cores]")
@click.option("--batch-bytes", metavar="SIZE", help="The most input of a batch.  [default: 32MiB]")
@click.option(
    "--batch-seconds", metavar="TIME", help="The approximate time of a batch.  [default: 2s]"
)
@click.option(
    "--limit",
    "limits",
    multiple=True,
    metavar="UPDATE=N",
    callback=pairs("count=1000"),
    help="The most events that each shard of an update takes in a batch. Repeatable.",
)
@click.option("--lane", type=click.Choice(LANES), help="How batches run.  [default: auto]")
@click.option(
    "--slate-warn", metavar="SIZE", help="Warn of slates over this size.  [default: 1MiB]"
)
@click.option("--slate-limit", metavar="SIZE", help="The largest slate.  [default: 16MiB]")
@click.option(
    "--flush", metavar="TIME", help="The time between flushes.  [default: flush every batch]"
)
@click.option(
    "--sink-patience", metavar="TIME", help="Retry a failing sink for this time.  [default: 10m]"
)
@click.option(
    "--standby", is_flag=True, default=None, help="Wait until no other driver leads, then run."
)
@accept_loss
@click.option(
    "--lease", metavar="TIME", help="A leader silent for this time is replaced.  [default: 10s]"
)
@click.option("--memory", metavar="SIZE", help="Memory of Spark's driver.  [default: 1g]")
@click.option("--package", metavar="FILE", help="The code of its jobs, for agents: see `pack`.")
@click.option(
    "--serve/--no-serve",
    default=None,
    help="Serve a live page and HTTP.  [default: yes, unless the run stops by itself]",
)
@serving_options
def run(app: str, **flags: Any) -> None:
    """Run an application on Spark until Ctrl-C, or until the input ends.

    After a restart it continues where it was: nothing is lost, nothing counted twice. While it
    runs, a live page shows it, events can be sent to it and slates read over HTTP. A source without
    an address reads the events that are sent to it.

    --final means that the input is complete: when it is processed, open sessions and windows come
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
        from millstream.service.app_packages import check_current

        check_current(app, settings.package)
    _run(target.app, with_runtime(app, settings))


def run_app(app: AppDefinition, settings: dict[str, Any]) -> None:
    """Runs an application from a script. All other places of settings win over `settings`."""
    try:
        _run(app, script_settings(app, settings, "run"))
    except MillstreamError as error:
        tell_in_one_line(error)
        raise


def script_settings(app: AppDefinition, settings: dict[str, Any], method: str) -> Settings:
    """Returns the settings of a run that a script starts with a `method` of its application."""
    loading = being_loaded()
    if loading is not None:
        raise DefinitionError(
            f"app.{method}() was called while {loading} was being loaded; "
            "put it under if __name__ == '__main__':"
        )
    main = getattr(sys.modules["__main__"], "__file__", None)
    return with_runtime(main, resolve(app, environ=os.environ, code=settings))


def _run(app: AppDefinition, settings: Settings) -> None:
    """Runs the application, and prints a summary and hints at its end."""
    addresses_of(app.name, checked(app).actions, settings.addresses.actions)
    say(f"app {app.name}, store {settings.storage.shown}, starting ...")
    result = run_served(app, settings)
    say(f"{summary(result)}; store {settings.storage.shown}")
    batches = settings.batches
    for hint in end_hints(result, final=batches.final) if batches.available_now else ():
        say(hint)
    if result.dead_input is not None and batches.available_now:
        raise RunError(f"{result.dead_input}; see them with --store {settings.storage.shown}")
    if result.dead_letters:
        say(f"see what failed: millstream deadletters --store {settings.storage.shown}")
