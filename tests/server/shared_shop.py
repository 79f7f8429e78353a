"""A small application on a shared store, run in this process."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any, Self

import millstream as ms
from millstream.driver.in_process import run
from millstream.service.app_description import describe_app
from millstream.settings.settings import Settings


def shop() -> ms.App:
    """Counts the check-ins of each venue."""
    app = ms.App("shop")
    app.source("checkins", key="venue")

    @app.update("checkins", name="count")
    def count(event: Any, slate: Any) -> None:
        if event.value.get("fail"):
            raise ValueError("asked to fail")
        slate["n"] = slate.get("n", 0) + 1

    return app


def settings_of(folder: Path, source: str = "", **more: Any) -> Settings:
    given = {
        "shards": 4,
        "place": f"shared:{folder / 'place'}",
        "cache": str(folder / "cache"),
        **more,
    }
    (folder / "in").mkdir(parents=True, exist_ok=True)
    sources = {"checkins": source or f"json:{folder / 'in'}"}
    return Settings.of("shop", folder / "work", sources, **given)


def add(folder: Path, name: str, *venues: str) -> None:
    """Put a file of check-ins where the application finds it."""
    (folder / "in").mkdir(parents=True, exist_ok=True)
    unfinished = folder / f"{name}.unfinished"
    unfinished.write_text("".join(json.dumps({"venue": venue}) + "\n" for venue in venues))
    unfinished.rename(folder / "in" / f"{name}.json")


def run_once(folder: Path) -> None:
    """Process what is there."""
    settings, app = settings_of(folder, available_now=True), shop()
    run(app, settings, ready=lambda: describe_app(app, settings))


class RunningApp:
    """An application on a shared store, in a thread. A context manager that stops it."""

    def __init__(self, app: ms.App, settings: Settings) -> None:
        self._app, self._settings = app, settings
        self._stop = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        app, settings = self._app, self._settings
        try:
            run(app, settings, stop=self._stop, ready=lambda: describe_app(app, settings))
        except BaseException as error:
            self._error = error


class RunningShop(RunningApp):
    """The shop, in a thread."""

    def __init__(self, folder: Path, source: str = "") -> None:
        super().__init__(shop(), settings_of(folder, source))
