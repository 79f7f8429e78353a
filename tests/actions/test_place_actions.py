"""Actions of a shared store go on on another host, which has nothing but the place."""

from __future__ import annotations

from pathlib import Path

from asking import Clock, Told

from millstream.actions.attempt import AttemptOutcome, Policy
from millstream.actions.overview import action_state
from millstream.actions.place_records import (
    PlaceActionRecords,
    ask_retry_in,
    fetch_action_records,
)
from millstream.actions.worker import Worker
from millstream.log.logs_follower import bring_logs
from millstream.log.retention import Retention
from millstream.log.stream_logs import PlaceLogs
from millstream.places.memory_place import MemoryPlace
from millstream.sinks.columns import EVENT_COLUMNS
from millstream.sinks.log_sink import LogSink
from millstream.stores.home import Facts
from millstream.stores.shared.shared_home import SharedHome


class Host:
    """A host that runs the application, on a folder of its own."""

    def __init__(self, place: MemoryPlace, folder: Path) -> None:
        self.home = SharedHome(place, folder, Facts("alerts", 1, {}, id="store"), None)
        folder.mkdir()
        self.logs = PlaceLogs(place, folder / "logs")
        self.clock = Clock()
        self.records = PlaceActionRecords(place, folder, lambda: self.clock.seconds)

    def ask(self, batch: int, *keys: str) -> None:
        path = self.home.log_of("notify")
        sink = LogSink(path, "query", EVENT_COLUMNS, Retention(), self.logs)
        sink.publish(batch, [{"ts": n, "key": key, "value": None} for n, key in enumerate(keys)])
        sink.close()

    def worker(self, carrier: Told) -> Worker:
        return Worker(
            self.home,
            "notify",
            carrier,
            Policy(1, None),
            self.clock.clocks,
            logs=self.logs,
            records=self.records,
        )

    def drain(self, worker: Worker) -> None:
        while (pause := worker.step()) is not None:
            self.clock.seconds += pause


def test_another_host_goes_on(tmp_path: Path) -> None:
    """Settled events are not carried out again. Dead letters are known, and can be put back."""
    place = MemoryPlace()
    first = Host(place, tmp_path / "first")
    carrier = Told(AttemptOutcome("done"), AttemptOutcome("dead", "refused"))
    worker = first.worker(carrier)
    first.ask(0, "a", "b", "c")
    first.drain(worker)
    assert carrier.keys == ["a", "b", "c"]

    second = Host(place, tmp_path / "second")
    carrier = Told()
    worker = second.worker(carrier)
    second.ask(0, "a", "b", "c")
    second.ask(1, "d")
    second.drain(worker)
    assert carrier.keys == ["d"]
    assert (worker.position.done, worker.position.failed) == (3, 1)

    ask_retry_in(place, "notify", 1)
    second.clock.seconds += 60
    second.drain(worker)
    assert carrier.keys == ["d", "b"]
    assert carrier.carried[-1].id.endswith("-r1")

    seen = tmp_path / "mirror"
    seen.mkdir()
    fetch_action_records(place, seen)
    bring_logs(place, seen / "logs", ["notify", "notify.failed"])
    state = action_state(seen, "notify")
    assert (state.done, state.waiting, state.failed, state.dead_letters) == (4, 0, 0, 1)
