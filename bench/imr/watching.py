"""Follows the windows of a job at the root over HTTP, as an agent does, with the times of their
answers."""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from bench.apart import RunFailedError
from bench.lean import get_json

LOOK = 0.05
PATIENCE = 120.0


@dataclass(slots=True)
class Window:
    """A window, as it was opened and closed; times of day in seconds, when they were read."""

    number: int
    opened: float | None = None
    closed: float | None = None
    """When the last of its reducers had closed it."""
    told: list[dict[str, Any]] = field(default_factory=list)
    """The summaries of its reducers, one each."""

    @property
    def why(self) -> str:
        return str(self.told[0]["why"]) if self.told else ""

    @property
    def area(self) -> float:
        return float(self.told[0]["coverage"]["area"]) if self.told else 0.0

    @property
    def took(self) -> float:
        """Seconds from its opening to its end."""
        if self.opened is None or self.closed is None:
            raise RunFailedError(f"window {self.number} was not both opened and closed")
        return self.closed - self.opened


class Watch:
    """Follows a job until it is left."""

    def __init__(self, url: str, job: str, slide: float, reducers: int = 1) -> None:
        """`slide` in the units of the job's axis: from where a window begins to its number."""
        self.windows: dict[int, Window] = {}
        self.accepted = 0
        """Messages that the root has taken."""
        self.requests = 0
        """Its own, so that they can be told from those of others."""
        self._url, self._job, self._slide, self._reducers = url, job, slide, reducers
        self._next = {"told": "start", "windows": "start"}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(LOOK):
            self.look()

    def look(self) -> None:
        """Read what is new."""
        for of, take in (("told", self._told), ("windows", self._summary)):
            path = f"/streams/{quote(self._job)}.{of}/records?from={self._next[of]}&limit=1000"
            self.requests += 1
            try:
                found = get_json(self._url, path)
            except (OSError, http.client.HTTPException, RunFailedError):
                continue  # there is nothing yet, or the server is busy
            at = time.time()
            self._next[of] = str(found["next"])
            for record in found["records"]:
                value = record["value"]
                take(value.get("value", value), at)

    def _told(self, value: dict[str, Any], at: float) -> None:
        if "accepted" in value:
            self.accepted += 1
        elif "opened" in value:
            window = self._of(int(value["opened"]))
            window.opened = at if window.opened is None else window.opened

    def _summary(self, value: dict[str, Any], at: float) -> None:
        if value.get("correction"):
            return
        window = self._of(round(value["from"] / self._slide))
        window.told.append(value)
        if len(window.told) == self._reducers:
            window.closed = at

    def _of(self, number: int) -> Window:
        return self.windows.setdefault(number, Window(number))

    def closed(self) -> list[Window]:
        """The windows that are closed, in their order."""
        done = [one for one in list(self.windows.values()) if one.closed is not None]
        return sorted(done, key=lambda one: one.number)

    def until(
        self,
        met: Callable[[list[Window]], bool],
        meanwhile: Callable[[], None] = lambda: None,
        patience: float = PATIENCE,
    ) -> list[Window]:
        """The closed windows as soon as they are as they should be; RunFailedError if they never
        are. `meanwhile` is called at each look."""
        deadline = time.monotonic() + patience
        while not met(self.closed()):
            if time.monotonic() > deadline:
                seen = [(one.number, one.why) for one in self.closed()]
                raise RunFailedError(f"{self._job}: waited {patience:.0f} s; closed: {seen}")
            meanwhile()
            time.sleep(LOOK)
        return self.closed()
