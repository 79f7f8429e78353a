"""The examples over their generated data: Spark gives what the reference gives, in both orders.

In event-time order the data is cut into several batches, wherever that falls. In order of arrival
it is one batch where a batch boundary would show in the result.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from driver_runs.harness import Outcome, assert_same, outcome_of, reference_over

from examples import generate
from millstream import App
from millstream.model.event import Event
from millstream.spark.runner import run
from millstream.stores.home import Home

pytestmark = pytest.mark.spark
EXAMPLES = Path(generate.__file__).parent
FILES, BATCHES = 5, 6
WHOLE = 1 << 30
"""Bytes of a batch that takes everything."""
Fresh = Callable[[str, str], App]


class Data(NamedTuple):
    """An example's records. Few days make them dense, and then some come late."""

    series: Callable[[int, int, float], Iterator[Any]]
    count: int
    days: float


DATA = {
    "retail": Data(generate.checkins, 3_000, 0.05),
    "hot_topics": Data(generate.tweets, 3_000, 5.0),
    "reputation": Data(generate.tweets, 1_500, 0.02),
    "top_urls": Data(generate.tweets, 2_000, 0.05),
    "http_counters": Data(generate.requests, 2_000, 0.1),
}


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> Fresh:
    """Gives an example's application, loaded anew, in the order asked for."""

    def load(name: str, order: Any) -> App:
        spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, name, module)
        spec.loader.exec_module(module)
        module.app.order = order
        return module.app  # type: ignore[no-any-return]

    return load


class Ran(NamedTuple):
    """A run on Spark, and what went into it."""

    outcome: Outcome
    events: list[Event]
    batches: int


def ran(spark: Any, app: App, folder: Path, *, batches: int, lane: str) -> Ran:
    """Run over the example's records, in several files, as about so many batches."""
    (source,) = app.checked().sources
    data, extract = DATA[app.name], replace(source, ahead=None).extractor()
    records = list(data.series(data.count, 7, data.days))
    (folder / "in" / source.name).mkdir(parents=True)
    for number in range(FILES):
        part = records[number * data.count // FILES : (number + 1) * data.count // FILES]
        generate.write(folder / "in" / source.name, f"part-{number}.json", part)
    size = sum(file.stat().st_size for file in (folder / "in" / source.name).iterdir())
    batch_bytes = WHOLE if batches == 1 else size // batches
    on_spark = partial(run, context=spark)
    given = {"shards": 4, "lane": lane, "batch_bytes": batch_bytes}
    found = outcome_of(on_spark, app, folder, **given)
    events = [Event(source.name, *extract(record, 0), record) for record in records]
    return Ran(found, events, Home.open(folder / "store").committed() + 1)


@pytest.mark.parametrize(
    ("name", "lane", "comes_late"),
    [
        ("retail", "one-task", True),
        ("hot_topics", "shuffled", False),
        ("reputation", "one-task", False),
        ("top_urls", "shuffled", True),
        ("http_counters", "one-task", True),
    ],
)
def test_in_event_time_order(
    spark: Any, fresh: Fresh, tmp_path: Path, name: str, lane: str, comes_late: bool
) -> None:
    """Over several batches, byte for byte the reference's result over the input less what was
    late; and only an example that allows no lateness has late events, the data being out of order
    by up to five seconds."""
    app = fresh(name, "event-time")
    found = ran(spark, app, tmp_path, batches=BATCHES, lane=lane)
    assert found.batches > BATCHES
    assert bool(found.outcome.late) is comes_late
    assert len(found.outcome.late) < len(found.events) / 10
    assert_same(found.outcome, reference_over(app, found.events, found.outcome.late))
    assert found.outcome.slates
    assert found.outcome.letters == []


@pytest.mark.parametrize(
    ("name", "lane", "batches"),
    [
        ("retail", "shuffled", BATCHES),
        ("http_counters", "shuffled", BATCHES),
        ("top_urls", "one-task", 1),  # the order of the ten in the slate is that of their coming
        ("hot_topics", "one-task", 1),  # a day's count is compared with those of the days before
    ],
)
def test_in_order_of_arrival(
    spark: Any, fresh: Fresh, tmp_path: Path, name: str, lane: str, batches: int
) -> None:
    """The reference's result, over several batches where the functions do not depend on order."""
    app = fresh(name, "arrival")
    found = ran(spark, app, tmp_path, batches=batches, lane=lane)
    assert found.batches >= batches
    assert found.outcome.late == []
    assert_same(found.outcome, reference_over(app, found.events, []))
    assert found.outcome.slates
    assert found.outcome.letters == []


def test_a_cycle_in_order_of_arrival(spark: Any, fresh: Fresh, tmp_path: Path) -> None:
    """In order of arrival an endorsement takes effect a batch later, so its worth depends on the
    batches and differs from the reference's. But none is lost or doubled, every user has the
    reference's number of them and last time, and the lanes agree to the last byte."""
    one, two = (
        ran(spark, fresh("reputation", "arrival"), tmp_path / lane, batches=3, lane=lane)
        for lane in ("one-task", "shuffled")
    )
    assert one.outcome == two.outcome
    exact = reference_over(fresh("reputation", "arrival"), one.events, [])

    def certain(outcome: Outcome) -> dict[Any, tuple[int, int]]:
        return {
            owner: (last, json.loads(data)["endorsements"])
            for owner, (last, data, _, _) in outcome.slates.items()
        }

    assert certain(one.outcome) == certain(exact)
    scores = [json.loads(data)["score"] for _, data, _, _ in one.outcome.slates.values()]
    assert min(scores) == 1.0 < max(scores) < 100.0
    assert one.outcome.slates != exact.slates, "the batches show: else this test could be exact"
