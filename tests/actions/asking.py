"""An action of a real store, asked as a batch does that is committed, and carried out by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from millstream.actions.action_events import ActionEvent
from millstream.actions.attempt import AttemptOutcome, Policy
from millstream.actions.worker import Carrier, Clocks, Worker
from millstream.log.retention import Retention
from millstream.sinks.columns import EVENT_COLUMNS
from millstream.sinks.log_sink import LogSink
from millstream.stores.home import Home

STARTED = 1_700_000_000_000_000


class Clock:
    """A clock that only a test moves."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.clocks = Clocks(
            lambda: STARTED + round(self.seconds * 1e6), lambda: self.seconds, lambda: 0.0
        )


class Told:
    """A carrier that does as it is told: outcomes in order, then always done."""

    def __init__(self, *outcomes: AttemptOutcome | BaseException, group: int = 1) -> None:
        self.group = group
        self.outcomes = list(outcomes)
        self.carried: list[ActionEvent] = []

    def carry(self, asked: Any) -> AttemptOutcome:
        self.carried.extend(asked)
        outcome = self.outcomes.pop(0) if self.outcomes else AttemptOutcome("done")
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    def close(self) -> None:
        pass

    @property
    def keys(self) -> list[str]:
        return [one.row.key for one in self.carried]


class Died(BaseException):
    """The process dies here."""


class Store:
    """A store with one action, `notify`."""

    def __init__(self, folder: Path, action: str = "notify") -> None:
        self.home = Home.make(folder / "store", "alerts", 4, {})
        self.path = self.home.path
        self.action = action
        self.clock = Clock()
        self.batch = -1
        self.told: list[str] = []

    def ask(self, *keys: str, value: Any = None, **more: Any) -> None:
        """Publish events, as one committed batch does."""
        self.batch += 1
        log = self.home.log_of(self.action)
        sink = LogSink(log, "query", EVENT_COLUMNS, more.get("retention", Retention()))
        rows = [{"ts": n, "key": key, "value": value} for n, key in enumerate(keys)]
        sink.publish(self.batch, rows)
        sink.close()

    def worker(self, carrier: Carrier, tries: int = 3, patience: float | None = None) -> Worker:
        return Worker(
            self.home,
            self.action,
            carrier,
            Policy(tries, patience),
            self.clock.clocks,
            address="stderr",
            tell=self.told.append,
        )

    def id(self, record: int, again: str = "") -> str:
        return f"{self.home.facts.id}-{self.action}-{record}{again}"


def drain(store: Store, worker: Worker) -> list[float]:
    """Step until nothing is left; the pauses between tries, which the clock makes at once."""
    pauses = []
    while (pause := worker.step()) is not None:
        store.clock.seconds += pause
        if pause:
            pauses.append(pause)
    return pauses
