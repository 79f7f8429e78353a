"""`millstream.App`: an application that can be defined, drawn and run.

Its definition is `model.app.AppDefinition`, which knows nothing about running. This module joins it
to the command line's run and to the drawing, so that no lower layer depends on them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any

from millstream.counted_nouns import counted
from millstream.errors import RunError
from millstream.extras import needed_by
from millstream.model.app import AppDefinition

if TYPE_CHECKING:
    from millstream.client import Client
    from millstream.driver.report import BatchSummary, RunSummary


class App(AppDefinition):
    """An application: sources, maps, updates and outputs, in the order they are declared."""

    def run(self, **settings: Any) -> None:
        """Run the application on Spark until it is stopped; settings as for `millstream run`."""
        from millstream.cli.commands.run import run_app  # imported here: only a run needs Spark

        with needed_by("app.run()"):
            run_app(self, settings)

    def start(
        self, *, on_batch: Callable[[BatchSummary], None] | None = None, **settings: Any
    ) -> RunningApp:
        """Run the application on Spark in a thread of its own, for a notebook or a larger program.

        Settings as for `millstream run`. Returns once the store is open and the server, if there is
        one, answers; raises the error that prevents this. `on_batch` is called after each batch, in
        the run's thread.
        """
        from millstream.cli.commands.run import script_settings
        from millstream.cli.spark_run import run_served

        resolved = script_settings(self, settings, "start")
        self.checked()
        running = RunningApp(self.name, on_batch)
        with needed_by("app.start()"):
            running._begin(
                lambda: run_served(
                    self, resolved, served=running._up, also=running._committed, stop=running._stop
                )
            )
        return running

    def __repr__(self) -> str:
        sources = counted(len(self._sources), "source")
        return f"<App {self.name!r}: {sources}, {counted(len(self._functions), 'function')}>"

    def _repr_svg_(self) -> str:
        """Draws the workflow for a notebook."""
        from millstream.graph import svg

        return svg(self.checked())


class RunningApp:
    """An application that runs in a thread of this process. A context manager, which stops it.

    Its methods may be called from any thread.
    """

    def __init__(self, name: str, on_batch: Callable[[BatchSummary], None] | None) -> None:
        self.name = name
        self.url = ""
        """The address of its server; empty if it has none."""
        self.last_batch: BatchSummary | None = None
        """The summary of the last committed batch; None before the first."""
        self._on_batch = on_batch
        self._stop = threading.Event()
        self._is_up = threading.Event()
        self._result: RunSummary | None = None
        self._error: BaseException | None = None
        self._thread: threading.Thread | None = None

    @property
    def is_running(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def client(self, **options: Any) -> Client:
        """Returns a client of its server; RunError if it has none."""
        from millstream.client import Client

        if not self.url:
            raise RunError(f"app {self.name!r} has no server; start it with serve=True")
        return Client(self.url, **options)

    def stop(self) -> None:
        """Ask it to stop after the current batch, and return at once."""
        self._stop.set()

    def wait(self, timeout: float | None = None) -> RunSummary:
        """Wait until it has ended, and return its summary.

        Raises the error that ended it, or TimeoutError if it still runs after `timeout` seconds.
        """
        if self._thread is not None:
            self._thread.join(timeout)
        if self.is_running:
            raise TimeoutError(f"app {self.name!r} still runs after {timeout} s; stop() ends it")
        if self._error is not None:
            raise self._error
        if self._result is None:
            raise RunError(f"app {self.name!r} has not been started")
        return self._result

    def __enter__(self) -> RunningApp:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self.stop()
        if error is None:
            self.wait()
        elif self._thread is not None:
            self._thread.join()  # the caller's error is the one to raise

    def __repr__(self) -> str:
        state = "running" if self.is_running else "ended"
        return f"<RunningApp {self.name!r}: {state}{', ' + self.url if self.url else ''}>"

    def _begin(self, work: Callable[[], RunSummary]) -> None:
        def run() -> None:
            try:
                self._result = work()
            except BaseException as error:
                self._error = error
            finally:
                self._is_up.set()

        self._thread = threading.Thread(target=run, name=f"millstream-{self.name}", daemon=True)
        self._thread.start()
        self._is_up.wait()
        if self._error is not None:
            self._thread.join()
            raise self._error

    def _up(self, url: str, _: threading.Event) -> None:
        self.url = url
        self._is_up.set()

    def _committed(self, batch: BatchSummary) -> None:
        self.last_batch = batch
        if self._on_batch is not None:
            self._on_batch(batch)
