"""Agents, a parent and a root that really runs: windows that have every record once."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, TypeVar
from urllib.request import urlopen

import pytest

from millstream.server.lock import served_by

pytestmark = pytest.mark.spark
APP = Path(__file__).with_name("live_words.py")
T = TypeVar("T")


@contextmanager
def started(folder: Path, *words: str) -> Iterator[subprocess.Popen[str]]:
    """A command in a process group of its own, of which nothing is left."""
    process = subprocess.Popen(
        [sys.executable, "-m", "millstream.cli.main", *words],
        env={k: v for k, v in os.environ.items() if not k.startswith("MILLSTREAM_")},
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=(folder / f"{words[0]}-{len(list(folder.iterdir()))}.err").open("w"),
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def until(found: Callable[[], T], folder: Path, seconds: float = 120) -> T:
    """Waits until the result of `found` is true, and returns it."""
    deadline = time.monotonic() + seconds
    while not (value := found()):
        said = {path.name: path.read_text()[-2_000:] for path in folder.glob("*.err")}
        assert time.monotonic() < deadline, f"not within {seconds} seconds: {said}"
        time.sleep(0.1)
    return value


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def agent(folder: Path, node: str, *more: str) -> AbstractContextManager[subprocess.Popen[str]]:
    given = ("agent", str(APP), "--node", node, "--log", f"{node}.log*", "--state", f"state-{node}")
    return started(folder, *given, *more)


def records(url: str, stream: str) -> list[Any]:
    """The values that a stream of the server has."""
    with urlopen(f"{url}/streams/{stream}/records?from=start&limit=1000", timeout=30) as answer:
        return [one["value"] for one in json.load(answer)["records"]]


def write(folder: Path, node: str, numbers: range) -> None:
    with (folder / f"{node}.log").open("a") as file:
        file.writelines(f"{node} all n{number % 7}\n" for number in numbers)


def test_a_tree_of_agents(tmp_path: Path) -> None:
    """Three nodes, one of them the parent of the others and one killed in the middle, its log
    rotated meanwhile: every window is complete and has each record of each node once."""
    for node in ("top", "a", "b"):
        write(tmp_path, node, range(900))
    port = free_port()
    with started(tmp_path, "run", str(APP), "--store", "store", "--port", "0"):
        url = until(lambda: (there := served_by(tmp_path / "store")) and there.url, tmp_path)
        until(lambda: _has(url, "counts.panes"), tmp_path)
        up = ("--root", url, "--parent", f"top=http://127.0.0.1:{port}")
        top = agent(tmp_path, "top", "--root", url, "--serve", str(port), "--children", "a,b")
        with top, agent(tmp_path, "b", *up):
            with agent(tmp_path, "a", *up):
                until(lambda: len(records(url, "counts.windows")) >= 2, tmp_path)
            (tmp_path / "a.log").rename(tmp_path / "a.log.1")
            for node in ("top", "a", "b"):
                write(tmp_path, node, range(900, 2_001))
            with agent(tmp_path, "a", *up):
                until(lambda: len(records(url, "counts.windows")) >= 5, tmp_path)
        told = [one["value"] for one in records(url, "counts.windows")]
        found = {
            (one["value"]["from"], one["key"]): one["value"]["value"]
            for one in records(url, "counts")
        }
    assert sorted((one["from"], one["why"]) for one in told) == [
        (begin, "complete") for begin in range(0, 2_000, 400)
    ]
    assert {one["residual"] for window in told for one in window["accounts"].values()} == {0}
    for begin in range(0, 2_000, 400):
        numbers = Counter(f"n{number % 7}" for number in range(begin, begin + 400))
        expected = {"top": 400, "a": 400, "b": 400, "all": 1_200}
        expected |= {word: 3 * count for word, count in numbers.items()}
        assert {word: count for (at, word), count in found.items() if at == begin} == expected


def _has(url: str, stream: str) -> bool:
    try:
        with urlopen(f"{url}/streams", timeout=30) as answer:
            return stream in answer.read().decode()
    except OSError:
        return False
