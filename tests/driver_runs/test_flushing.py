"""Batches that are flushed together: what is visible at once, and what a power cut undoes."""

from __future__ import annotations

import json
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest

import millstream as ms
from fault_runs.chain import chain, chain_difference, records, settings_of
from fault_runs.outcome import Difference
from fault_runs.published_rows import read_rows
from millstream.driver.durability.disk_flush import Flushing
from millstream.driver.in_process import run
from millstream.durable import read_record, write_record
from millstream.settings.settings import Settings
from millstream.stores.home import Home
from millstream.stores.reader import SlateReader
from millstream.stores.soft import SOFT, Soft, read_flushed

HOUR = 3_600_000_000


def put(folder: Path, number: int, given: list[dict[str, Any]]) -> None:
    (folder / "in").mkdir(parents=True, exist_ok=True)
    lines = (json.dumps(record) + "\n" for record in given)
    (folder / "in" / f"{number:04d}.json").write_text("".join(lines))


def run_chain(
    folder: Path, flush: int | None, *, final: bool = False, lane: str = "one-task"
) -> list[str]:
    """Runs over the existing input, and returns the messages."""
    said: list[str] = []
    given = settings_of(folder, lane, flush=flush, final=final)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run(chain(), given, say=said.append)
    return said


def check(folder: Path, given: list[dict[str, Any]]) -> None:
    """Slates, output, late events and dead letters are the reference's."""
    assert chain_difference(folder, given) == Difference(0, 0)


def published(folder: Path) -> list[Any]:
    out = folder / "out" / "alerts"
    return list(read_rows(str(out))) if out.exists() else []


def never_flushed(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Do it as a driver that is ended before it could flush."""
    with monkeypatch.context() as patched:
        patched.setattr(Flushing, "flush", lambda *_, **__: None)
        act()


def cut_power(store: Path, random: Random, progress: bytes | None) -> None:
    """Simulates a power cut: leaves anything in the files that were not flushed."""
    soft = msgspec.json.decode(read_record(store / SOFT) or b"", type=Soft)
    write_record(store / SOFT, msgspec.json.encode(msgspec.structs.replace(soft, boot="earlier")))
    for path in soft.folder(store).rglob("*"):
        if path.is_file():
            size = path.stat().st_size
            path.write_bytes(random.randbytes(random.choice([0, size // 2, min(size, 1 << 16)])))
    for path in (store / "staging").iterdir():
        path.write_bytes(b"")
    if progress is not None:
        (store / "progress").write_bytes(progress)


@pytest.mark.parametrize("lane", ["one-task", "shuffled"])
def test_the_result_is_the_same(tmp_path: Path, lane: str) -> None:
    """With batches flushed once, at the end, everything is as the reference has it."""
    given = records(1)
    for number in range(0, 400, 100):
        put(tmp_path, number, given[number : number + 100])
    assert run_chain(tmp_path, HOUR, final=True, lane=lane) == []
    check(tmp_path, given)


@pytest.mark.parametrize(
    "progress",
    [
        pytest.param(None, id="whole"),
        pytest.param(b"", id="empty"),
        pytest.param(b"0badcafe {", id="torn"),
    ],
)
def test_a_power_cut_goes_back_to_the_last_flush(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, progress: bytes | None
) -> None:
    """Whatever is left of the files that were not flushed, readers see the last flush. The next
    start says how much is processed again. The result is the reference's, with each output once."""
    given = records(2)
    put(tmp_path, 0, given[:200])
    run_chain(tmp_path, HOUR)
    flushed, told = Home.open(tmp_path / "store").committed(), published(tmp_path)
    with SlateReader(tmp_path / "store") as reader:
        before = list(reader.scan("fold"))
    put(tmp_path, 1, given[200:])
    never_flushed(monkeypatch, lambda: run_chain(tmp_path, HOUR))
    store = tmp_path / "store"
    assert Home.open(store).committed() > flushed
    assert published(tmp_path) == told
    cut_power(store, Random(4), progress)
    with SlateReader(store) as reader:
        assert reader.batch == flushed
        assert list(reader.scan("fold")) == before
    said = run_chain(tmp_path, HOUR, final=True)
    assert len(said) == 1
    assert f"at the end of batch {flushed}; " in said[0]
    if progress is None:
        assert "batches with 200 records that were not flushed are processed again" in said[0]
    check(tmp_path, given)
    assert published(tmp_path)[: len(told)] == told


def test_a_power_cut_before_the_first_flush(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The application begins anew."""
    given = records(3)
    put(tmp_path, 0, given)
    never_flushed(monkeypatch, lambda: run_chain(tmp_path, HOUR))
    cut_power(tmp_path / "store", Random(5), None)
    assert Home.open(tmp_path / "store").committed() == -1
    (said,) = run_chain(tmp_path, HOUR, final=True)
    assert "with 400 records that were not flushed are processed again" in said
    check(tmp_path, given)


def test_a_power_cut_after_an_orderly_end_takes_nothing(tmp_path: Path) -> None:
    """An application that has ended has flushed: there is nothing to say and nothing lost."""
    given = records(4)
    put(tmp_path, 0, given[:200])
    run_chain(tmp_path, HOUR)
    committed = Home.open(tmp_path / "store").committed()
    cut_power(tmp_path / "store", Random(6), b"")
    assert Home.open(tmp_path / "store").committed() == committed
    assert run_chain(tmp_path, HOUR) == []
    assert Home.open(tmp_path / "store").committed() == committed
    put(tmp_path, 1, given[200:])
    assert run_chain(tmp_path, HOUR, final=True) == []
    check(tmp_path, given)


def test_each_run_may_flush_in_another_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From every batch to an interval and back, the last time after a run that could not flush."""
    given = records(5)
    for number, flush in enumerate([None, HOUR, None, HOUR]):
        put(tmp_path, number, given[80 * number : 80 * number + 80])
        if number == 3:
            never_flushed(monkeypatch, lambda: run_chain(tmp_path, HOUR))
        else:
            run_chain(tmp_path, flush)
        assert (tmp_path / "store" / SOFT).exists() == (flush is not None)
    put(tmp_path, 4, given[320:])
    assert run_chain(tmp_path, None, final=True) == []
    assert not (tmp_path / "store" / SOFT).exists()
    assert list((tmp_path / "store" / "soft").iterdir()) == []
    check(tmp_path, given)


def loud() -> ms.App:
    app = ms.App("loud")
    app.source("words", key="word", ts="ts", unit="us")
    app.output("seen")

    @app.update("words", publishes="seen")
    def count(event: Any, slate: Any) -> Any:
        slate["count"] = slate.get("count", 0) + 1
        yield ms.emit(value=slate["count"])

    return app


def running(folder: Path, flush: int, watch: Callable[[], object]) -> Any:
    """Run until `watch` gives something; what it gave."""
    sinks = {"seen": f"json:{folder / 'seen'}"}
    given = Settings.of("loud", folder / "store", {"words": f"json:{folder / 'in'}"}, sinks)
    stop, failed = threading.Event(), []

    def drive() -> None:
        try:
            run(loud(), given.changed(flush=flush, shards=2), stop=stop)
        except BaseException as error:
            failed.append(error)

    driver = threading.Thread(target=drive)
    driver.start()
    deadline, found = time.monotonic() + 60, None
    while not found and time.monotonic() < deadline and not failed:
        found = watch()
        stop.wait(0.02)
    stop.set()
    driver.join(30)
    assert not failed
    return found


def test_slates_are_readable_before_the_flush(tmp_path: Path) -> None:
    """A slate is there when its batch is committed; the output is published by the flush, which
    comes at the latest when the application ends."""
    put(tmp_path, 0, [{"word": "a", "ts": 1}, {"word": "a", "ts": 2}])

    def watch() -> Any:
        if not (tmp_path / "store" / "store.json").exists():
            return None
        with SlateReader(tmp_path / "store") as reader:
            slate = reader.get("count", "a")
        return slate and (slate.value, list((tmp_path / "seen").glob("part*")))

    assert running(tmp_path, HOUR, watch) == ({"count": 2}, [])
    assert [row["value"] for row in read_rows(str(tmp_path / "seen"))] == [1, 2]


def test_an_idle_application_flushes(tmp_path: Path) -> None:
    """When the interval has passed, what is committed is flushed, though no batch follows."""
    put(tmp_path, 0, [{"word": "a", "ts": 1}])
    found = running(tmp_path, 300_000, lambda: [*(tmp_path / "seen").glob("part*")][:1])
    assert found
    assert read_flushed(tmp_path / "store").progress.events == 1
