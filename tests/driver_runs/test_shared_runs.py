"""The driver on a shared store gives the reference's results, on whatever hosts the tasks run."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

from driver_runs.harness import (
    IN_MEMORY,
    assert_same,
    read_outcome,
    record_of,
    reference_outcome,
    wrapped,
    write_records,
)
from engine.workflow_case import Case
from engine.workflow_cases import cases
from generated_cases import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fault_runs.outcome import stored_slates
from millstream.driver.in_process import InProcessRunner
from millstream.driver.maintenance.shared_resharding import reshard_shared
from millstream.driver.run import run
from millstream.driver.startup.leadership import LEADER
from millstream.log import placed_blocks
from millstream.log.entries import Entry
from millstream.log.mirror import LogMirror, LogMirrorRecord, read_log_mirror
from millstream.log.place_writer import PlaceLogWriter
from millstream.places import place_address
from millstream.places.directory_place import DirectoryPlace
from millstream.settings.settings import Settings
from millstream.stores.home import Home
from millstream.stores.shared import manifest, shared_home
from millstream.stores.shared.store_mirror import StoreMirror

lanes = st.sampled_from(["one-task", "shuffled"])
sizes = st.sampled_from([150, 1_000, 1 << 20])
generated = settings(
    max_examples=examples(40),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


class HostLost(Exception):
    """Stands for the end of the host of a driver, in the middle of whatever it does."""


class DyingPlace(DirectoryPlace):
    """A place whose only user dies at one of its writes: before it, or right after it."""

    left = 0
    """Writes until then; 0: never."""
    after = False

    def put(self, name: str, data: bytes) -> None:
        if name == LEADER:  # written by the clock, and by a thread of its own
            return
        self._write(lambda: super(DyingPlace, self).put(name, data))

    def create(self, name: str, data: bytes) -> bool:
        return self._write(lambda: super(DyingPlace, self).create(name, data))

    def _write(self, write: Callable[[], Any]) -> Any:
        cls = type(self)
        cls.left -= 1
        if cls.left == 0 and not cls.after:
            raise HostLost
        done = write()
        if cls.left == 0:
            raise HostLost
        return done


class SharedRuns:
    """Runs of one application on a shared store, each on a host of its own."""

    def __init__(
        self,
        folder: Path,
        case: Case,
        *,
        seated: bool = False,
        logs: bool = False,
        away: bool = False,
        **options: Any,
    ) -> None:
        """`logs`: events come through event logs in the place; `away`: tasks run on other hosts
        than the driver, and do not see its mirrors."""
        self.folder = folder
        self.seated = seated
        self.logs = logs
        self.away = away
        self.place = DirectoryPlace(folder / "place")
        self.case = case
        self.app = wrapped(case.app())
        self.hosts = 0
        self._options = options

    def send(self, part: int = 0, parts: int = 1) -> None:
        """Lets a part of the events arrive."""
        count = len(self.case.events)
        events = self.case.events[part * count // parts : (part + 1) * count // parts]
        if not self.logs:
            write_records(self.folder / "in", events, files=3)
            return
        writers: dict[str, list[PlaceLogWriter]] = {}
        for number, event in enumerate(events):
            stream = f"raw_{event.stream}"
            if stream not in writers:
                writers[stream] = [PlaceLogWriter(self.place, stream) for _ in range(2)]
            line = json.dumps(record_of(event)).encode()
            for _ in range(2):  # sent again, to whichever server
                writers[stream][number % 2].append([Entry.of([line], f"{part}-{number}")])
                writers[stream].reverse()

    def run(self, *, final: bool = True) -> None:
        """Run on a host that has nothing yet, until all input is processed."""
        self.hosts += 1
        workflow = self.app.checked()
        sources: dict[str, str] = {}
        for source in workflow.sources:
            path = self.folder / "in" / source.name.removeprefix("raw_")
            path.mkdir(parents=True, exist_ok=True)
            sources[source.name] = "log" if self.logs else f"json:{path}"
        options: dict[str, Any] = {
            "shards": self.case.shards,
            "tasks": self.case.tasks,
            "available_now": True,
            "final": final,
            "place": f"shared:{self.folder / 'place'}",
            "cache": str(self.folder / f"cache{self.hosts}"),
            **self._options,
        }
        sinks = {name: f"json:{self.folder / 'out' / name}" for name in workflow.outputs}
        work = self.folder / f"work{self.hosts}"
        given = Settings.of(self.app.name, work, sources, sinks, **options)
        with patch.object(placed_blocks, "read_log_mirror", self._mirror_record):
            run(self.app, given, lambda: InProcessRunner(seated=self.seated))

    def _mirror_record(self, folder: Path) -> LogMirrorRecord | None:
        return None if self.away else read_log_mirror(folder)

    def check(self) -> None:
        """Checks that the result is byte for byte the reference's."""
        mirror = StoreMirror(self.place, self.folder / "store", 0.0)
        mirror.close()
        for stream in {listed.name.split("/")[1] for listed in self.place.list("logs/")}:
            LogMirror(self.place, stream, self.folder / "store" / "logs" / stream).close()
        found = read_outcome(self.app.checked(), self.folder)
        assert_same(found, reference_outcome(self.app, self.case.events, found.late))


@contextmanager
def shared_runs(case: Case, **options: Any) -> Iterator[SharedRuns]:
    folder = Path(tempfile.mkdtemp(prefix="millstream-case-", dir=IN_MEMORY))
    try:
        yield SharedRuns(folder, case, **options)
    finally:
        shutil.rmtree(folder)


@generated
@given(cases(), lanes, sizes, st.booleans())
def test_runs_on_a_shared_store(case: Case, lane: str, batch_bytes: int, seated: bool) -> None:
    """Slates, streams and dead letters are byte for byte the reference's, whether feedback is read
    by the tasks that read the sources or, as on a cluster, by tasks of its own."""
    with shared_runs(case, lane=lane, batch_bytes=batch_bytes, seated=seated) as runs:
        runs.send()
        runs.run()
        runs.check()


@generated
@given(cases(), lanes)
def test_bases_and_packs_change_nothing(case: Case, lane: str) -> None:
    """The same if every batch makes bases and packs due."""
    with (
        patch.object(manifest, "LEAST_BASE_BYTES", 1),
        patch.object(manifest, "PACKED_TOGETHER", 2),
        patch.object(shared_home, "MANIFEST_EVERY", 3),
        patch.object(shared_home, "GRACE_SECONDS", 0.0),
        shared_runs(case, lane=lane, batch_bytes=150) as runs,
    ):
        runs.send()
        runs.run()
        runs.check()


@settings(generated, max_examples=examples(15))
@given(cases(), st.integers(1, 9))
def test_a_shared_store_with_other_shards_is_the_same(case: Case, shards: int) -> None:
    """Resharded, also while a mirror follows it, it has the same slates; and it can go on."""
    with shared_runs(case, batch_bytes=1_000) as runs:
        runs.send()
        runs.run()
        place = DirectoryPlace(runs.folder / "place")
        following = StoreMirror(place, runs.folder / "following", 0.0)
        before = stored_slates(following.path)
        reshard_shared(place, shards, lambda text: None, cache=str(runs.folder / "cache"))
        while following.follow():
            pass
        following.close()
        assert Home.open(runs.folder / "following").facts.shards == shards
        assert stored_slates(following.path) == before
        runs.case = replace(runs.case, shards=shards)
        runs.run()
        runs.check()


@generated
@given(cases(), lanes, sizes, st.booleans(), st.integers(1, 3))
def test_runs_from_logs(case: Case, lane: str, batch_bytes: int, away: bool, starts: int) -> None:
    """The same if events come through event logs in the place, each sent twice and to two servers,
    and every start is on a host that has nothing but the place."""
    options: dict[str, Any] = {"lane": lane, "batch_bytes": batch_bytes}
    with shared_runs(case, logs=True, away=away, **options) as runs:
        for start in range(starts):
            runs.send(start, starts)
            runs.run(final=start == starts - 1)
        runs.check()


@generated
@given(cases(), lanes, st.integers(1, 60), st.booleans(), st.booleans())
def test_a_driver_that_dies_at_any_write(
    case: Case, lane: str, left: int, after: bool, logs: bool
) -> None:
    """Another host, which has only the place, continues. Nothing is lost or doubled."""
    with shared_runs(case, lane=lane, batch_bytes=150, logs=logs) as runs:
        runs.send()
        with (
            patch.object(DyingPlace, "left", left),
            patch.object(DyingPlace, "after", after),
            patch.object(place_address, "DirectoryPlace", DyingPlace),
        ):
            try:
                runs.run()
            except HostLost:
                pass
        runs.run()
        runs.check()
