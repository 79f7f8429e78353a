"""Whole runs whose output goes to Kafka: each event once, on a folder and on a shared store."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fault_runs.committed_records import committed_records
from fault_runs.kafka_driver import application
from fault_runs.kafka_server import KafkaBrokers, kafka_brokers
from fault_runs.processes import wait_until
from millstream.driver.in_process import run
from millstream.kafka import batch_producer
from millstream.settings.settings import Settings

pytestmark = pytest.mark.services
KEYS = "abcd"


def give(folder: Path, first: int, count: int) -> None:
    """A file of numbered records."""
    records = [{"id": n, "key": KEYS[n % len(KEYS)]} for n in range(first, first + count)]
    hidden = folder / f".{first:06d}.json"
    hidden.write_text("".join(json.dumps(record) + "\n" for record in records))
    hidden.rename(folder / f"{first:06d}.json")


def settings_of(folder: Path, servers: str, out: str, changes: str, **given: Any) -> Settings:
    at = f"?servers={servers}"
    return Settings.of(
        "numbering",
        folder / "store",
        {"events": f"json:{folder / 'in'}"},
        {"seen": f"kafka:{out}{at}", "count.changes": f"kafka:{changes}{at}"},
        shards=2,
        check_store=False,
        batch_bytes=500,
        **given,
    )


def assert_whole(brokers: KafkaBrokers, out: str, changes: str, count: int) -> None:
    """Each record was numbered once, in order; the last change of a key is its count."""
    told: dict[str, list[tuple[int, int]]] = {key: [] for key in KEYS}
    for record in committed_records(brokers, out):
        value = json.loads(record.value or b"")
        told[(record.key or b"").decode()].append((value["n"], value["id"]))
    for start, key in enumerate(KEYS):
        ids = range(start, count, len(KEYS))
        assert told[key] == [*enumerate(ids, 1)]
    slates = {record.key: record.value for record in committed_records(brokers, changes)}
    assert slates == {key.encode(): b'{"n":%d}' % (count // len(KEYS)) for key in KEYS}


@pytest.mark.parametrize("shared", [False, True])
def test_each_event_is_there_once(kafka: KafkaBrokers, tmp_path: Path, shared: bool) -> None:
    """This holds for any number of starts, with a store in a folder and in a place."""
    (tmp_path / "in").mkdir()
    out, changes = kafka.new_topic(partitions=3), kafka.new_topic()
    place: dict[str, str] = {}
    for start in range(3):
        if shared:  # each time on another host
            cache = str(tmp_path / f"cache{start}")
            place = {"place": f"shared:{tmp_path / 'place'}", "cache": cache}
        give(tmp_path / "in", 40 * start, 40)
        given = settings_of(tmp_path, kafka.servers, out, changes, available_now=True, **place)
        run(application(), given)
    assert_whole(kafka, out, changes, 120)


def test_brokers_that_are_away_are_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run says what it waits for, continues when they are back, and nothing is doubled."""
    monkeypatch.setattr(batch_producer, "SECONDS", 5.0)
    (tmp_path / "in").mkdir()
    said: list[str] = []
    stop = threading.Event()
    with kafka_brokers(tmp_path / "brokers") as brokers:
        out, changes = brokers.new_topic(partitions=2), brokers.new_topic()
        given = settings_of(tmp_path, brokers.servers, out, changes)
        batches: list[int] = []
        thread = threading.Thread(
            target=run,
            args=(application(), given, lambda report: batches.append(report.batch)),
            kwargs={"stop": stop, "say": said.append},
        )
        give(tmp_path / "in", 0, 40)
        thread.start()
        try:
            wait_until(lambda: len(batches) > 0)
            brokers.kill(1)
            give(tmp_path / "in", 40, 40)
            wait_until(has_said(said, "trying again"))
            brokers.restart(1)
            wait_until(has_said(said, "works again"))
        finally:
            stop.set()
            thread.join(120)
        run(application(), settings_of(tmp_path, brokers.servers, out, changes, available_now=True))
        assert_whole(brokers, out, changes, 80)


def has_said(said: list[str], words: str) -> Callable[[], bool]:
    return lambda: any(words in sentence for sentence in said)
