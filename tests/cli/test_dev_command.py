"""`millstream dev`: an application without Spark, loaded again when its files change."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import millstream as ms

APP = """
import millstream as ms
from step import STEP

app = ms.App("counting")
app.source("words", key="word")

@app.update("words")
def count(event, slate):
    slate["n"] = slate.get("n", 0) + STEP
"""


class Developed:
    """`millstream dev` over an application in a folder of its own."""

    def __init__(self, folder: Path, *words: str) -> None:
        self.folder = folder
        (folder / "app.py").write_text(APP)
        self.write_step("STEP = 1")
        self.log = folder / "log"
        with self.log.open("w") as log:
            command = [sys.executable, "-m", "millstream.cli.main", "dev", "app.py", "--port", "0"]
            self.process = subprocess.Popen([*command, *words], cwd=folder, stderr=log)
        self.wait_for("live page and HTTP: ")
        url = self.log.read_text().partition("live page and HTTP: ")[2].split()[0]
        self.client = ms.Client(url)

    def write_step(self, text: str) -> None:
        (self.folder / "step.py").write_text(f"{text}\n")

    def wait_for(self, words: str, times: int = 1) -> None:
        until(lambda: self.log.read_text().count(words) >= times, self.log)

    def send(self, expected: int) -> None:
        """Sends another word, and counts it."""
        self.client.send("words", [{"word": "x"}])
        until(lambda: self.count() == expected, self.log)

    def count(self) -> Any:
        slate = self.client.get("count", "x")
        return slate and slate.value["n"]

    def end(self) -> int:
        self.client.close()
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(20)


def until(reached: Callable[[], bool], log: Path) -> None:
    deadline = time.monotonic() + 30
    while not reached():
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.02)


@pytest.fixture
def developed(tmp_path: Path) -> Iterator[Developed]:
    running = Developed(tmp_path)
    yield running
    if running.process.poll() is None:
        running.process.kill()
        running.process.wait()


def test_a_changed_file_is_loaded_and_the_slates_stay(developed: Developed) -> None:
    """A module that the application imports changes: the new code goes on with the old slates, and
    the server never goes away. Ctrl-C ends it in order."""
    developed.send(expected=1)
    developed.write_step("STEP = 10")
    developed.wait_for("loading it again")
    developed.wait_for("runs in this process", times=2)
    developed.send(expected=11)
    assert developed.end() == 0
    assert developed.log.read_text().endswith("millstream: stopped\n")
    assert "Traceback" not in developed.log.read_text()


def test_a_mistake_is_shown_and_mended_by_the_next_change(developed: Developed) -> None:
    """While the application cannot be loaded, its slates can be read; the mended one goes on."""
    developed.send(expected=1)
    developed.write_step("STEP = (")
    developed.wait_for("step.py:1: SyntaxError")
    developed.wait_for("waiting for a change")
    assert developed.count() == 1
    developed.write_step("STEP = 100")
    developed.wait_for("runs in this process", times=2)
    developed.send(expected=101)
    assert developed.end() == 0


def test_on_a_shared_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server beside the application serves a mirror of the store, even if this run creates the
    store. It accepts events, and stays up while the application is reloaded."""
    monkeypatch.setenv("MILLSTREAM_CACHE", str(tmp_path / "cache"))
    running = Developed(tmp_path, "--store", f"shared:{tmp_path / 'place'}")
    try:
        running.send(expected=1)
        running.write_step("STEP = 10")
        running.wait_for("runs in this process", times=2)
        running.send(expected=11)
        assert running.client.status().mirror.error is None
        assert running.end() == 0
        assert "Traceback" not in running.log.read_text()
    finally:
        if running.process.poll() is None:
            running.process.kill()
            running.process.wait()
