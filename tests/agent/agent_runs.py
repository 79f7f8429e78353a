"""Agents in a thread of a test, over a log in a folder, against a root of tests."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

import msgspec
from taking_root import Root

import millstream as ms
from millstream.agent.agent import run_jobs
from millstream.agent.job_status import JobStatus
from millstream.agent.options import AgentOptions
from millstream.windows.placed import PlacedJob


def words(record: Any) -> Iterator[tuple[str, int]]:
    for word in record["line"].split():
        yield word, 1


def add(a: int, b: int) -> int:
    return a + b


def placed(logs: ms.windows.Logs | None = None, **options: Any) -> PlacedJob:
    """A job that counts words, in panes of a second unless it is told otherwise."""
    given = {"map": words, "combine": add, "range": "4s", "pane": "1s", **options}
    job = ms.windows.Job(**given)
    return PlacedJob(job, "counts", ("web1", "web2"), logs or ms.windows.Logs(ts="ts", unit="s"))


def write(path: Path, *records: tuple[float, str]) -> None:
    """Add records to a log: their time in seconds and a line of words."""
    with path.open("a") as file:
        file.writelines(json.dumps({"ts": ts, "line": line}) + "\n" for ts, line in records)


def run_agent(
    placed: PlacedJob, options: AgentOptions, stop: Event, say: Callable[[str], None]
) -> JobStatus:
    """Runs one job whose state folder is `options.state` itself."""
    return run_jobs({options.state: placed}, options, stop, say)[placed.name]


def options(folder: Path, root: Root, **more: Any) -> AgentOptions:
    given = {"node": "web1", "patterns": (str(folder / "app.log*"),), "root": root.url}
    # The memory is that of the process, which is here the tests'.
    return AgentOptions(**{**given, "state": folder / "state", "memory": 1 << 40, **more})


def once(folder: Path, root: Root, job: PlacedJob, **more: Any) -> dict[str, Any]:
    """Read the log to its end; how it was."""
    with running(folder, root, job, once=True, **more) as agent:
        return agent.ended()


class Agent:
    """An agent that runs in a thread."""

    def __init__(self, job: PlacedJob, options: AgentOptions) -> None:
        self.said: list[str] = []
        self.stop = Event()
        self.status: dict[str, Any] = {}
        self.failure: Exception | None = None
        self._job, self._options = job, options
        self.thread = Thread(target=self._run, daemon=True)
        self.thread.start()

    def ended(self) -> dict[str, Any]:
        """Wait until it ends by itself; how it was, or what it raised."""
        self.thread.join(30)
        assert not self.thread.is_alive(), self.said
        if self.failure is not None:
            raise self.failure
        return self.status

    def told(self) -> dict[str, Any]:
        """The contents of the agent's status file."""
        path = self._options.state / "status.json"
        told: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
        return told

    def _run(self) -> None:
        try:
            status = run_agent(self._job, self._options, self.stop, self.said.append)
            self.status = msgspec.to_builtins(status)
        except Exception as error:
            self.failure = error


@contextmanager
def running(folder: Path, root: Root, job: PlacedJob, **more: Any) -> Iterator[Agent]:
    """An agent, ended when the block is left."""
    agent = Agent(job, options(folder, root, **more))
    try:
        yield agent
    finally:
        agent.stop.set()
        agent.thread.join(10)


def until(holds: Callable[[], Any], seconds: float = 20) -> None:
    """Wait until something holds."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.02)


def messages(root: Root) -> list[dict[str, Any]]:
    """All that was posted."""
    return [json.loads(line) for _, _, body in root.posts for line in body.splitlines()]


def manifests(root: Root) -> list[tuple[int, str, str | None, int, int]]:
    """Returns for each message its pane, mark, reason, records and shed records."""
    return [
        (one["pane"], told["mark"], told["why"], told["records"], told["shed"])
        for one in messages(root)
        for told in one["nodes"].values()
    ]
