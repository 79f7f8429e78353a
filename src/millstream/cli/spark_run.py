"""A run on Spark together with its display, its server and its stop signals."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

from millstream.cli.progress import Display, display
from millstream.cli.stop_signals import stoppable
from millstream.model.app import AppDefinition
from millstream.notices import say
from millstream.service.app_description import describe_app
from millstream.service.run_server import RunServer
from millstream.service.server_settings import options_of
from millstream.settings.settings import Settings

if TYPE_CHECKING:
    from millstream.driver.report import BatchSummary, RunSummary


def run_served(
    app: AppDefinition,
    settings: Settings,
    *,
    served: Callable[[str, threading.Event], None] | None = None,
    also: Callable[[BatchSummary], None] | None = None,
    stop: threading.Event | None = None,
) -> RunSummary:
    """Runs an application until it ends or is stopped, with a server if the settings ask for one.

    `served` is called when the store is open and the server is up, with its address (empty without
    a server) and the event that stops the run; `also` is called with each batch, as the display is.
    With `stop` the caller stops the run: no signal is handled and nothing is displayed.
    """
    serve = not settings.batches.available_now if settings.serve is None else settings.serve
    with ExitStack() as open_:
        options = replace(options_of(settings), wait=True)
        serving = open_.enter_context(RunServer(options)) if serve else None

        def title() -> str:
            where = (serving and serving.url) or settings.storage.shown
            return f"{app.name} is running: {where}"

        shown: list[Display] = []

        def show() -> None:
            """Opens the display, which says that Spark is starting: not before it is."""
            if stop is None:
                shown.append(display(settings.batches.available_now, time.monotonic, title))
                open_.callback(shown[0].close)

        def running() -> None:
            for lines in shown:
                lines.running()

        def report(batch: BatchSummary) -> None:
            for lines in shown:
                lines(batch)
            if also is not None:
                also(batch)

        def work(stop: threading.Event) -> RunSummary:
            from millstream.spark.context_lease import early_lease

            def ready() -> None:
                describe_app(app, settings)
                if serving is not None and not settings.storage.place:
                    serving.start()
                show()
                if serving is not None and settings.storage.place:
                    serving.start_later(lambda: served and served(serving.url, stop))
                elif served is not None:
                    served(serving.url if serving is not None else "", stop)

            with early_lease(app.name, settings.cluster) as lease:
                # This import takes a while: meanwhile the JVM starts.
                from millstream.spark.runner import run as run_on_spark

                return run_on_spark(
                    app,
                    settings,
                    report,
                    stop=stop,
                    ready=ready,
                    running=running,
                    say=say,
                    lease=lease,
                )

        return stoppable(work) if stop is None else work(stop)
