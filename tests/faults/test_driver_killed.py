"""A driver ended with SIGKILL at every named point loses and doubles nothing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import warnings
from pathlib import Path
from random import Random
from typing import Any

import pytest
from faults.child import chain, settings_of
from spark.harness import Outcome, assert_same, content_sorted, letter_key, read_outcome

from millstream.engine.points import POINTS
from millstream.model.event import Event
from millstream.reference import Reference
from millstream.spark.query import run

pytestmark = pytest.mark.spark
HERE = Path(__file__).parent
SEEDS = int(os.environ.get("MILLSTREAM_FAULT_SEEDS", "2"))


def records(seed: int, count: int = 400) -> list[dict[str, Any]]:
    random = Random(seed)
    return [
        {"key": f"k{random.randrange(20)}", "ts": 10 * n + random.randrange(30), "n": n}
        for n in range(count)
    ]


def prepare(folder: Path, seed: int) -> list[dict[str, Any]]:
    given = records(seed)
    (folder / "in").mkdir(parents=True)
    for number in range(0, len(given), 100):
        lines = (json.dumps(record) + "\n" for record in given[number : number + 100])
        (folder / "in" / f"{number:04d}.json").write_text("".join(lines))
    return given


def expected(given: list[dict[str, Any]], late: list[Event]) -> Outcome:
    """The reference's result over the records that were not late."""
    workflow = chain().checked()
    events = [Event("records", record["ts"], record["key"], record) for record in given]
    for gone in late:
        events.remove(gone)
    reference = Reference(workflow)
    reference.feed(events)
    reference.drain()
    slates: Any = {o: (s.last, s.data, s.timers, s.entries) for o, s in reference.slates.items()}
    letters = sorted(letter_key(letter) for letter in reference.dead_letters)
    streams = {"alerts": content_sorted(reference.streams["alerts"])}
    return Outcome(slates, streams, late, letters)


def start_child(folder: Path, lane: str, point: str, batch: int) -> subprocess.Popen[bytes]:
    path = os.pathsep.join([str(HERE.parent), os.environ.get("PYTHONPATH", "")])
    return subprocess.Popen(
        [sys.executable, str(HERE / "child.py"), str(folder), lane, point, str(batch)],
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": path},
        stderr=subprocess.PIPE,
    )


def kill_at(folder: Path, lane: str, point: str, batch: int) -> None:
    """Run a driver until the fault ends it."""
    child = start_child(folder, lane, point, batch)
    _, errors = child.communicate(timeout=200)
    assert child.returncode == -signal.SIGKILL, errors.decode()


@pytest.mark.faults
@pytest.mark.parametrize(
    ("point", "lane"),
    [(point, ("one-task", "shuffled")[number % 2]) for number, point in enumerate(POINTS)],
)
def test_at_every_point(spark: Any, tmp_path: Path, point: str, lane: str) -> None:
    """Ended at the point in batch 1 and started again, the application ends with the slates, the
    output, the late events and the dead letters that the reference gives."""
    if point == "between-layers":
        lane = "shuffled"  # one task has nothing between its layers
    given = prepare(tmp_path, seed=POINTS.index(point))
    kill_at(tmp_path, lane, point, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run(chain(), settings_of(tmp_path, lane), spark=spark)
    found = read_outcome(chain().checked(), tmp_path)
    assert_same(found, expected(given, found.late))


@pytest.mark.faults
@pytest.mark.parametrize("seed", range(SEEDS))
def test_again_and_again(spark: Any, tmp_path: Path, seed: int) -> None:
    """Ended three times at points drawn by seed, in batches drawn by seed: the same."""
    random, given = Random(seed), prepare(tmp_path, seed)
    batch = 0
    for _ in range(3):
        lane, point = random.choice(["one-task", "shuffled"]), random.choice(POINTS)
        if lane == "one-task" and point == "between-layers":
            point = "layer-commit"
        kill_at(tmp_path, lane, point, batch)
        batch += random.choice([1, 2])
    run(chain(), settings_of(tmp_path, "one-task"), spark=spark)
    found = read_outcome(chain().checked(), tmp_path)
    assert_same(found, expected(given, found.late))
