"""A run on Spark with all that belongs to it: its display, its server, its end."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING

from millstream.cli.progress import display, say
from millstream.cli.serving import Serving, describe_app
from millstream.cli.serving_options import options_of
from millstream.cli.stopping import stoppable
from millstream.model.app import App
from millstream.model.place import shown_path
from millstream.settings import Settings

if TYPE_CHECKING:
    from millstream.driver.report import BatchSummary, RunSummary


def run_served(
    app: App,
    settings: Settings,
    *,
    served: Callable[[str, threading.Event], None] | None = None,
    also: Callable[[BatchSummary], None] | None = None,
) -> RunSummary:
    """Run an application until it ends or is stopped, with its server if it is to have one.

    `served` is called when the server is up, with its address and the event that stops the run;
    `also` is told of each batch, as the display is.
    """
    serve = not settings.available_now if settings.serve is None else settings.serve
    with ExitStack() as open_:
        serving = open_.enter_context(Serving(options_of(settings))) if serve else None

        def title() -> str:
            where = serving.url if serving else shown_path(settings.store)
            return f"{app.name} is running: {where}"

        shown = display(settings.available_now, time.monotonic, title)
        open_.callback(shown.close)

        def report(batch: BatchSummary) -> None:
            shown(batch)
            if also is not None:
                also(batch)

        def work(stop: threading.Event) -> RunSummary:
            from millstream.spark.runner import run as run_on_spark

            def ready() -> None:
                describe_app(app, settings)
                if serving is not None:
                    serving.start()
                    if served is not None:
                        served(serving.url, stop)

            return run_on_spark(app, settings, report, stop=stop, ready=ready, say=say)

        return stoppable(work)
