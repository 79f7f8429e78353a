"""`millstream dev`: run an application in this process, without Spark, and again when it changes.

The engine, the store, the server and the page are those of `run`; only the tasks run here, one
after the other. The server goes on while the application is loaded anew, and the slates stay.
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

from millstream.cli.check import checked
from millstream.cli.failing import show
from millstream.cli.place_options import place_options
from millstream.cli.progress import display, say
from millstream.cli.serving import describe_app
from millstream.cli.serving_options import options_of, serving_options
from millstream.cli.stopping import stoppable
from millstream.config import Target, load
from millstream.errors import MillstreamError
from millstream.model.place import shown_path
from millstream.modules import forget_user_modules, user_files
from millstream.settings import Settings, resolve

if TYPE_CHECKING:
    from millstream.server.options import Options

LOOK_SECONDS = 0.2
"""How often the application's files are looked at."""
Stamps = dict[Path, tuple[int, int]]


@click.command()
@click.argument("app")
@place_options
@serving_options
def dev(app: str, **flags: Any) -> None:
    """Run an application here, without Spark, and again whenever its files change.

    For the edit-and-run loop: it starts without a JVM, has the same page, HTTP and slates
    as `run`, and keeps the slates over a change. It uses one core; `run` is for real work.

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
        server = open_.enter_context(_Server())
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
                # A module that could not be imported is not known: it lies beside the application.
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
    server: _Server,
    stamps: Stamps,
    stop: threading.Event,
    began: float,
) -> None:
    """Run the application until one of its files changes, or a stop is asked for."""
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
        server.start(options_of(settings))
        took = time.perf_counter() - began
        say(f"{app.name} runs in this process, store {shown_path(settings.store)} ({took:.2f} s)")

    shown = display(False, time.monotonic, lambda: f"{app.name} is running: {server.url}")
    try:
        run(app, settings, shown, stop=ending, ready=ready, say=say)
    finally:
        shown.close()


def _settings(target: Target, flags: dict[str, Any]) -> Settings:
    """As for `run`, but for the check of every row: that would take longer than the rest."""
    settings = resolve(target.app, target.toml, os.environ, flags)
    return replace(settings, check_store=False, available_now=False, final=False)


def _stamps(files: Iterable[Path]) -> Stamps:
    """When each file was last changed, and its size; a file that is gone has neither."""
    found = {}
    for file in files:
        try:
            stat = file.stat()
            found[file] = stat.st_mtime_ns, stat.st_size
        except OSError:
            found[file] = 0, 0
    return found


def _wait_for_change(stamps: Stamps, stop: threading.Event) -> None:
    while not stop.wait(LOOK_SECONDS):
        if _stamps(stamps) != stamps:
            return


class _Server:
    """The server of the store, in a thread of this process. A context manager."""

    def __init__(self) -> None:
        self.url = ""
        self._options: Options | None = None
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> _Server:
        return self

    def start(self, options: Options) -> None:
        """Serve as these options say, and go on if it does so already."""
        if self._options == options:
            return
        self.close()
        from millstream.server.lock import served_by
        from millstream.server.process import serve

        there = served_by(options.store)
        if there is not None and not there.beside:
            self.url, self._options = there.url, options
            say(f"a server is there already, and goes on: {there.url}")
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
                up.set()

        self._thread = threading.Thread(target=work, name="millstream-server", daemon=True)
        self._thread.start()
        up.wait()
        if failed:
            raise failed[0]
        self._options = options
        say(f"live page and HTTP: {self.url}")

    def close(self) -> None:
        """Stop serving."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        self._options = None

    def __exit__(self, *exc: object) -> None:
        self.close()
