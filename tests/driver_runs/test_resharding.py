"""A store with another number of shards is the same store."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest
from driver_runs.harness import (
    IN_MEMORY,
    assert_same,
    outcome_of,
    reference_outcome,
    wrapped,
    write_records,
)
from engine.workflow_case import Case
from engine.workflow_cases import cases
from generated_cases import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from millstream import App
from millstream.driver.in_process import run
from millstream.driver.maintenance import resharding
from millstream.driver.maintenance.resharding import reshard
from millstream.settings.settings import Settings
from millstream.stores.home import Home
from millstream.stores.reader import SlateReader
from millstream.verifying.store import verify

lanes = st.sampled_from(["one-task", "shuffled"])


def quietly(sentence: str) -> None:
    pass


@settings(
    max_examples=examples(20),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(cases() | cases(cyclic=True, delays="feedback"), lanes, st.integers(1, 9))
def test_a_run_goes_on_after_resharding(case: Case, lane: str, shards: int) -> None:
    """Everything that waits during the resharding is kept: waiting events, feedback, timers,
    tables."""
    folder = Path(tempfile.mkdtemp(prefix="millstream-case-", dir=IN_MEMORY))
    try:
        app = wrapped(case.app())
        half = len(case.events) // 2
        given = {"tasks": case.tasks, "lane": lane, "batch_bytes": 150, "check_store": False}
        write_records(folder / "in", case.events[:half], files=3)
        outcome_of(run, app, folder, shards=case.shards, final=False, **given)
        reshard(Home.open(folder / "store"), shards, quietly)
        assert Home.open(folder / "store").facts.shards == shards
        assert verify(folder / "store").faults == []
        write_records(folder / "in", case.events[half:], files=3)
        found = outcome_of(run, app, folder, **given)
        assert_same(found, reference_outcome(app, case.events, found.late))
    finally:
        shutil.rmtree(folder)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store with 300 slates in 4 shards."""
    app = App("counts", order="arrival")
    app.source("clicks", key="user")

    @app.update("clicks")
    def count(event: object, slate: dict[str, int]) -> None:
        slate["n"] = slate.get("n", 0) + 1

    (tmp_path / "in").mkdir()
    lines = "".join(f'{{"user": "u{number % 300}"}}\n' for number in range(900))
    (tmp_path / "in" / "a.json").write_text(lines)
    given = {"shards": 4, "available_now": True, "check_store": False}
    sources = {"clicks": f"json:{tmp_path / 'in'}"}
    run(app, Settings.of("counts", tmp_path / "store", sources, {}, **given))
    return tmp_path / "store"


def slates(store: Path) -> dict[str, object]:
    with SlateReader(store) as reader:
        return {slate.key: slate.value for slate in reader.scan("count")}


@pytest.mark.parametrize("after", range(6))
def test_a_resharding_that_is_cut_off_goes_on(
    store: Path, after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cut off at any of its writes, the store is whole; started again, it comes to the same."""
    before, writes = slates(store), 0

    def counting(path: Path, data: bytes, **options: bool) -> None:
        nonlocal writes
        if writes == after:
            raise KeyboardInterrupt
        writes += 1
        original(path, data, **options)

    original = resharding.write_record
    with monkeypatch.context() as patched:
        patched.setattr(resharding, "write_record", counting)
        try:
            reshard(Home.open(store), 7, quietly)
        except KeyboardInterrupt:
            assert Home.open(store).facts.shards == 4
    assert slates(store) == before
    reshard(Home.open(store), 7, quietly)
    assert slates(store) == before
    assert verify(store).faults == []
    assert len(list(store.glob("shards*"))) == 1
