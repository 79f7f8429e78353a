"""`millstream dev`: runs an application in this process, without Spark, and reloads it on changes.

The engine, the store, the server and the page are those of `run`; only the tasks run here, one
after the other. The server keeps running while the application is reloaded, and the slates stay.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from millstream.cli.commands.check import checked
from millstream.cli.error_exit import show
from millstream.cli.place_options import place_options
from millstream.cli.progress import display
from millstream.cli.serving_options import serving_options
from millstream.cli.stop_signals import stoppable
from millstream.config import Target, load
from millstream.errors import MillstreamError
from millstream.modules import forget_user_modules, user_files
from millstream.notices import say
from millstream.service.app_description import describe_app
from millstream.service.server_settings import options_of
from millstream.settings.settings import Settings, resolve

if TYPE_CHECKING:
    from millstream.server.options import ServerOptions

LOOK_SECONDS = 0.2
"""The time between two checks of the application's files."""
Stamps = dict[Path, tuple[int, int]]


@click.command()
@click.argument("app")
@place_options
@serving_options
def dev(app: str, **flags: Any) -> None:
    """Run an application here, without Spark, and reload it whenever its files change.

    For the edit-and-run loop: it starts without a JVM, has the same page, HTTP interface and slates
    as `run`, and keeps the slates across changes. It uses one core; `run` is for production.

    \b
    Examples:
        millstream dev app.py
        millstream dev app.py --source checkins=json:data/checkins --store /tmp/try
    """
    named = Path(app.rpartition(":")[0] if ":" in app else app)
    stoppable(lambda stop: _develop(app, named, flags, stop))
    say("stopped")


def _develop(app: str, named: Path, flags: dict[str, Any], stop: threading.Event) -> None:
    with ExitStack() as open_:
        server = open_.enter_context(_DevServer())
        while not stop.is_set():
            began = time.perf_counter()
            files: set[Path] = {named} if named.is_file() else set()
            stamps = _stamps(files)
            try:
                target = load(app)
                stamps |= _stamps(user_files() - files)
                _run_until_changed(target, flags, server, stamps, stop, began)
            except MillstreamError as error:
                show(error)
                # A module that failed to import is not known; it lies beside the application.
                beside = {*named.absolute().parent.glob("*.py"), *user_files()}
                stamps |= _stamps(beside - stamps.keys())
                say("waiting for a change of the application's files")
                _wait_for_change(stamps, stop)
            if not stop.is_set():
                forget_user_modules()
                say("the application has changed; loading it again")


def _run_until_changed(
    target: Target,
    flags: dict[str, Any],
    server: _DevServer,
    stamps: Stamps,
    stop: threading.Event,
    began: float,
) -> None:
    """Runs the application until one of its files changes, or a stop is requested."""
    from millstream.driver.in_process import run

    app = target.app
    checked(app)
    settings = _settings(target, flags)
    ending = threading.Event()

    def watch() -> None:
        _wait_for_change(stamps, stop)
        ending.set()

    threading.Thread(target=watch, name="millstream-files", daemon=True).start()

    def ready() -> None:
        describe_app(app, settings)
        if settings.storage.place:
            server.start_later(replace(options_of(settings), wait=True))
        else:
            server.start(options_of(settings))
        took = time.perf_counter() - began
        say(f"{app.name} runs in this process, store {settings.storage.shown} ({took:.2f} s)")

    shown = display(False, time.monotonic, lambda: f"{app.name} is running: {server.url}")
    try:
        run(app, settings, shown, stop=ending, ready=ready, running=shown.running, say=say)
    finally:
        shown.close()


def _settings(target: Target, flags: dict[str, Any]) -> Settings:
    """Returns the settings of `run`, without the check of every row, which would take longer than
    the rest. All losses are accepted: an application in development may lose slates, with a
    message."""
    settings = resolve(target.app, target.toml, os.environ, flags)
    lost = settings.storage.accept_loss or ("all",)
    return settings.changed(check_store=False, available_now=False, final=False, accept_loss=lost)


def _stamps(files: Iterable[Path]) -> Stamps:
    """Returns the time of the last change and the size of each file; zeros for a missing file."""
    stamps = {}
    for file in files:
        try:
            stat = file.stat()
            stamps[file] = stat.st_mtime_ns, stat.st_size
        except OSError:
            stamps[file] = 0, 0
    return stamps


def _wait_for_change(stamps: Stamps, stop: threading.Event) -> None:
    while not stop.wait(LOOK_SECONDS):
        if _stamps(stamps) != stamps:
            return


class _DevServer:
    """The server of the store, in a thread of this process. A context manager."""

    def __init__(self) -> None:
        self.url = ""
        self._options: ServerOptions | None = None
        self._awaited: ServerOptions | None = None
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> _DevServer:
        return self

    def start_later(self, options: ServerOptions) -> None:
        """Starts it in another thread: it waits for the first commit of a shared store, which only
        comes later."""
        if options == self._awaited:
            return
        self._awaited = options

        def start() -> None:
            try:
                self.start(options)
            except MillstreamError as error:
                show(error)

        threading.Thread(target=start, name="server-start", daemon=True).start()

    def start(self, options: ServerOptions) -> None:
        """Serves with these options; does nothing if it already does."""
        if self._options == options:
            return
        self.close()
        from millstream.server.lock import served_by
        from millstream.server.process import serve

        holder = served_by(options.store)
        if holder is not None and not holder.beside:
            self.url, self._options = holder.url, options
            say(f"using the server that is already running: {holder.url}")
            return
        up, failed = threading.Event(), []
        stop = self._stop = threading.Event()

        def ready(url: str) -> None:
            self.url = url
            up.set()

        def work() -> None:
            try:
                serve(options, stop, ready, beside=True)
            except MillstreamError as error:
                failed.append(error)
            finally:
                up.set()

        self._thread = threading.Thread(target=work, name="millstream-server", daemon=True)
        self._thread.start()
        up.wait()
        if stop.is_set():
            return
        if failed:
            raise failed[0]
        self._options = options
        say(f"live page and HTTP: {self.url}")

    def close(self) -> None:
        """Stops serving."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        self._options = None

    def __exit__(self, *exc: object) -> None:
        self.close()
