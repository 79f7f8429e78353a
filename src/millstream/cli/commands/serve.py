"""`millstream serve`: the HTTP server alone, whether or not the application runs."""

from __future__ import annotations

import os
import threading
from dataclasses import replace
from typing import Any

import click

from millstream.cli.serving_options import serving_options
from millstream.cli.stop_signals import stoppable
from millstream.cli.store import named_store
from millstream.config import load
from millstream.errors import CommandError
from millstream.model.app import AppDefinition
from millstream.notices import say
from millstream.service.app_description import describe_app
from millstream.service.server_settings import options_of
from millstream.settings.settings import Settings, resolve, served_settings


@click.command()
@click.argument("app", required=False)
@click.option(
    "--store",
    metavar="DIR|ADDRESS",
    help="A folder, or s3://BUCKET/PREFIX, gs://, az://, shared:DIR.  [default: the application's]",
)
@click.option(
    "--shards", metavar="0-15", help="Of a shared store: serve only these.  [default: all]"
)
@click.option("--cache", metavar="DIR", help="The folder for this host's mirror of a shared store.")
@serving_options
def serve(app: str | None, store: str | None, shards: str | None, **flags: Any) -> None:
    """Serve an application's slates and streams over HTTP, also while it does not run.

    Events that are sent meanwhile are kept, and processed when it runs again. With APP, the store
    is created if it does not exist; without, the store of an earlier run is served. An application
    that is started meanwhile on the same store uses this server.

    A shared store is served from a mirror on this host, which follows the store. Any number of
    servers, on any hosts, can serve it.

    \b
    Examples:
        millstream serve app.py
        millstream serve --store .millstream/retail --port 9000
        millstream serve --store s3://bucket/retail
    """
    if app is None:
        settings = served_settings(named_store(store, None), os.environ, flags)
    else:
        target = load(app)
        settings = resolve(target.app, target.toml, os.environ, {**flags, "store": store})
        if not settings.storage.place:
            _make_store(target.app, settings)
    options = options_of(settings)
    if settings.storage.place:
        wanted = None if shards is None else shards_in(shards)
        options = replace(options, shards=wanted, wait=app is not None)
        say(f"following {settings.storage.place} ...")
    elif shards is not None:
        raise CommandError(
            "--shards is for a shared store, such as s3://BUCKET/PREFIX; "
            f"{settings.storage.store} is a folder, and is served whole"
        )

    def work(stop: threading.Event) -> None:
        from millstream.server.process import serve as serve_http

        def ready(url: str) -> None:
            say(f"serving {settings.storage.shown}: {url}")

        serve_http(options, stop, ready)

    stoppable(work)
    say("stopped")


def shards_in(text: str) -> list[int]:
    """Parses shards as a user writes them.

    >>> shards_in("0-3,8")
    [0, 1, 2, 3, 8]
    """
    shards: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        ends = last if dash else first
        if not (first.isdecimal() and ends.isdecimal() and int(first) <= int(ends)):
            raise CommandError(f"--shards must be as in 0-15 or 0-3,8; got {text!r}")
        shards.update(range(int(first), int(ends) + 1))
    return sorted(shards)


def _make_store(app: AppDefinition, settings: Settings) -> None:
    """Creates the store and its description; leaves them unchanged while a driver holds them."""
    from millstream.errors import StoreLocked
    from millstream.stores.home import Home, held

    workflow = app.checked()
    try:
        with held(settings.storage.store):
            Home.make(
                settings.storage.store, app.name, settings.storage.shards, workflow.slate_kinds
            )
            describe_app(app, settings)
    except StoreLocked:
        say("the application runs already; serving it as it was started")
