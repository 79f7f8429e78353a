"""`millstream serve`: the HTTP server alone, for an application that runs elsewhere, or not."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import click

from millstream.cli.progress import say
from millstream.cli.serving import describe_app
from millstream.cli.serving_options import options_of, serving_options
from millstream.cli.stopping import stoppable
from millstream.cli.store import chosen_store
from millstream.config import load
from millstream.model.app import App
from millstream.model.place import shown_path
from millstream.settings import Settings, resolve, served_settings


@click.command()
@click.argument("app", required=False)
@click.option("--store", type=click.Path(path_type=Path), help="Default: the application's.")
@serving_options
def serve(app: str | None, store: Path | None, **flags: Any) -> None:
    """Serve an application's slates and streams over HTTP, also while it does not run.

    Events that are sent meanwhile are kept, and taken in when it runs again. With APP, the store is
    made if it is not there yet; without, the store of an earlier run is served. An application that
    is started while this serves its store uses this server.

    \b
    Examples:
        millstream serve app.py
        millstream serve --store .millstream/retail --port 9000
    """
    if app is None:
        settings = served_settings(chosen_store(store, None), os.environ, flags)
    else:
        target = load(app)
        settings = resolve(target.app, target.toml, os.environ, {**flags, "store": store})
        _make_store(target.app, settings)
    options = options_of(settings)

    def work(stop: threading.Event) -> None:
        from millstream.server.process import serve as serve_http

        def ready(url: str) -> None:
            say(f"serving {shown_path(settings.store)}: {url}")

        serve_http(options, stop, ready)

    stoppable(work)
    say("stopped")


def _make_store(app: App, settings: Settings) -> None:
    """The store, and what the server must know; left as they are while a driver holds them."""
    from millstream.errors import StoreLocked
    from millstream.stores.home import Home, held

    workflow = app.checked()
    try:
        with held(settings.store):
            Home.make(settings.store, app.name, settings.shards, workflow.slate_kinds)
            describe_app(app, settings)
    except StoreLocked:
        say("the application runs already; serving it as it was started")
