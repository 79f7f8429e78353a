"""The target system as a program: it begins when the application has told it how."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

import millstream as ms
from examples import optimise_target
from examples.optimising.target import EVERY
from millstream.client import Record

NOW = {"slice1": {"reserve": 3.8, "ads": 8.5}, "slice2": {"reserve": 2.0, "ads": 8.5}}


class Application:
    """In place of a client: answers a start, a while later, and ends the search at the third
    request with events."""

    def __init__(self, *, answers: bool = True) -> None:
        self.log: list[str] = []
        self.events: list[dict[str, Any]] = []
        self._answers = answers
        self._started, self._heard, self._enough = (threading.Event() for _ in range(3))
        self._for_ever = threading.Event()

    def status(self) -> Any:
        return SimpleNamespace(horizon=None)

    def tail(self, stream: str) -> Iterator[Record]:
        assert stream == "parameters"
        return self._tail()

    def _tail(self) -> Iterator[Record]:
        if not self._answers:
            self._for_ever.wait()
        self._started.wait()
        self._heard.wait(0.5)  # as long as Spark would take; events must not come meanwhile
        self.log.append("parameters")
        yield self._told(cycle=1, finished=False)
        self._enough.wait()
        yield self._told(cycle=2, finished=True)
        self._for_ever.wait()  # a tail never ends

    def _told(self, **said: Any) -> Record:
        value = {"slices": NOW, "best": NOW["slice2"], "after": None, **said}
        return Record(0, {"key": self._comparison, "value": value})

    def send_one(self, stream: str, event: dict[str, Any]) -> None:
        self.log.append(stream)
        self._comparison, self.start = event["comparison"], event["time"]
        self._started.set()

    def send(self, stream: str, events: Iterator[dict[str, Any]]) -> None:
        self.log.append(stream)
        self.events += events
        self._heard.set()
        if self.log.count("events") == 3:
            self._enough.set()


def test_its_time_goes_from_the_first_parameters_on(capsys: pytest.CaptureFixture[str]) -> None:
    """While the application starts, no day passes that is of no cycle; it says that it waits."""
    application: Any = Application()
    optimise_target.run(application, 1, hours=6, seconds=None)
    assert application.log[:3] == ["starts", "parameters", "events"]
    assert all(event["cycle"] == 1 for event in application.events[:20])
    first = min(event["time"] for event in application.events)
    assert first <= application.start + 3 * EVERY
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "waiting for the first parameters: does examples/optimise.py run?"
    assert said[1].startswith("cycle   1  day  0.0")


def test_it_does_not_wait_for_ever() -> None:
    """With --seconds it ends if nothing has come in that time, and says what to check."""
    application: Any = Application(answers=False)
    with pytest.raises(ms.RunError, match=r"no parameters came within 0\.3 s"):
        optimise_target.run(application, 1, hours=6, seconds=0.3)
    assert application.log == ["starts"]
