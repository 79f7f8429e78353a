"""The click-through rates of examples/ctr.py, against plain Python over the same records."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest
from engine.in_process import InProcess
from generated_cases import examples
from hypothesis import given, settings
from hypothesis import strategies as st

import millstream as ms
from examples import ctr_traffic
from examples.ctr_traffic import HOUR, MINUTE, START, Arrival, Traffic
from examples.ctr_truth import Counts, Rates, Rules, relative_error, true_rates
from millstream import App
from millstream.config import load
from millstream.model.event import Event
from millstream.settings.settings import Settings

EXAMPLES = Path(ctr_traffic.__file__).parent
LATENESS = 10_000


def in_python() -> App:
    return load(str(EXAMPLES / "ctr.py")).app


def in_toml() -> App:
    return load(str(EXAMPLES / "ctr.toml")).app


APPS = {"ctr.py": in_python, "ctr.toml": in_toml}
both = pytest.mark.parametrize("app", APPS.values(), ids=APPS)


def windows(values: Iterable[dict[str, Any]]) -> Rates:
    """Returns the output of either application. The sliding element also reports empty windows."""
    found = {}
    for value in values:
        counts = value["impressions"], value["clicks"]
        expected = counts[1] / counts[0] if counts[0] else None
        assert value["ctr"] == expected
        if counts == (0, 0):
            continue
        if "until" in value:
            window = value["until"], value["query"], value["ad"]
        else:
            window = (value["to"] // 1_000, *value["key"].split("|"))
        assert window not in found
        found[window] = counts
    return found


def on_reference(app: App, arrivals: Sequence[Arrival]) -> Rates:
    sources = ("serves", "clicks")
    records = {name: [record for source, record in arrivals if source == name] for name in sources}
    run = ms.testing.run(app, records)
    assert run.dead_letters == []
    return windows(event.value for event in run.stream("ctr"))


def busy(seed: int, events: int = 600, bots: float = 0.05) -> list[Arrival]:
    """Traffic with few queries and many bots."""
    given = Traffic(events, seed, queries=5, bots=bots, searches_a_user=40)
    return list(ctr_traffic.traffic(given))


# -- the traffic ----------------------------------------------------------------------------------


@pytest.mark.parametrize("events", ["0", "-5", "2", "many"])
def test_how_much_traffic_can_be_asked_for(
    events: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Too little is refused with what must be, and nothing is written; it used not to end."""
    with pytest.raises(SystemExit) as ended:
        ctr_traffic.main([f"--events={events}", "--out", str(tmp_path / "traffic")])
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert f"--events: must be a whole number, 3 or more; got '{events}'" in said
    assert not (tmp_path / "traffic").exists()


def test_what_was_written_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The output names the number of records of each source, and the folders."""
    ctr_traffic.main(["--events=1500", "--out", str(tmp_path)])
    lines = {
        name: (tmp_path / name / "part-0.json").read_text().count("\n")
        for name in ("serves", "clicks")
    }
    assert sum(lines.values()) == 1500
    assert capsys.readouterr().out.splitlines() == [
        f"wrote {count:,} {name} to {tmp_path / name}" for name, count in lines.items()
    ]


def test_traffic_is_as_asked_for() -> None:
    """The traffic has the requested number of records over 26 hours, in order, with bots. It is the
    same for the same seed."""
    arrivals = busy(3, 5_000, 0.01)
    assert arrivals == busy(3, 5_000, 0.01)
    assert arrivals != busy(4, 5_000, 0.01)
    assert len(arrivals) == 5_000
    times = [record["time"] for _, record in arrivals]
    assert times == sorted(times)
    assert times[-3] - START > 22 * HOUR
    assert times[-2] % HOUR == HOUR // 2
    users = {record["user"] for source, record in arrivals if source == "serves"}
    assert any(user.startswith("bot") for user in users)
    assert all("user" not in record for source, record in arrivals if source == "clicks")


def test_no_user_does_two_things_at_once() -> None:
    """So the order of a user's records is that of their times, and the truth has no ties."""
    users = {}
    seen = set()
    for source, record in busy(5, 3_000):
        if source == "serves":
            users[record["serve"]] = record["user"]
        moment = users[record["serve"]], record["time"]
        assert moment not in seen
        seen.add(moment)


def test_the_rules_find_the_bots_and_leave_people_alone() -> None:
    """With the rules the counts are close to the people's actions; without them they are not."""
    arrivals = list(ctr_traffic.traffic(Traffic(60_000, queries=10, bots=0.005)))
    bots = {
        record["serve"]
        for source, record in arrivals
        if source == "serves" and record["user"].startswith("bot")
    }
    people = [one for one in arrivals if one[1]["serve"] not in bots]
    none = Rules(soonest=0, serves_a_minute=10**9, clicks_a_minute=10**9)
    end = max(window[0] for window in true_rates(people, none))

    def last(found: Rates) -> dict[Any, Any]:
        return {window[1:]: counts for window, counts in found.items() if window[0] == end}

    wanted = last(true_rates(people, none))
    assert last(true_rates(people)) == wanted
    assert relative_error(last(true_rates(arrivals)), wanted) < 0.12
    assert relative_error(last(true_rates(arrivals, none)), wanted) > 0.25


# -- the application ------------------------------------------------------------------------------


@both
def test_it_builds_without_a_warning(app: Callable[[], App]) -> None:
    """Both are applications whose graph is whole."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        workflow = app().workflow()
    assert workflow.name == "ctr"
    assert workflow.order == "event-time"


@both
@settings(max_examples=examples(15), deadline=None)
@given(seed=st.integers(0, 10**6), bots=st.sampled_from([0.0, 0.02, 0.2]))
def test_rates_are_the_true_ones(app: Callable[[], App], seed: int, bots: float) -> None:
    """Every window of every query and ad holds exactly the impressions and clicks that it must."""
    arrivals = busy(seed, 400, bots)
    assert on_reference(app(), arrivals) == true_rates(arrivals)


@both
@settings(max_examples=examples(8), deadline=None)
@given(
    seed=st.integers(0, 10**6),
    cut=st.integers(0, 10**6),
    lane=st.sampled_from(["one-task", "shuffled"]),
    shards=st.sampled_from([1, 4]),
)
def test_the_engine_finds_them_too(
    app: Callable[[], App], seed: int, cut: int, lane: Any, shards: int
) -> None:
    """This holds for any batches, and for records that are out of order by less than the
    lateness."""
    arrivals, random = busy(seed, 300, 0.1), Random(cut)
    coming = sorted(
        (record["time"] + random.randrange(LATENESS), number)
        for number, (_, record) in enumerate(arrivals)
    )
    events = []
    for _, number in coming:
        source, record = arrivals[number]
        events.append(Event(source, record["time"] * 1_000, record["serve"], record))
    engine = InProcess(app().checked(), shards=shards, lane=lane)
    while events:
        size = random.randrange(1, 150)
        engine.batch(events[:size])
        events = events[size:]
    engine.settle(final=False)  # the traffic's last records lie behind the last hour that counts
    assert engine.late == []
    assert engine.letters == []
    assert windows(event.value for event in engine.streams["ctr"]) == true_rates(arrivals)


@pytest.mark.spark
def test_spark_finds_them(spark: Any, tmp_path: Path) -> None:
    """Over files, on Spark, as in the example's own words."""
    from millstream.spark.runner import run

    arrivals = busy(11, 3_000, 0.02)
    addresses = {}
    for name in ("serves", "clicks"):
        lines = [json.dumps(record) for source, record in arrivals if source == name]
        (tmp_path / name).mkdir()
        for part in range(3):
            path = tmp_path / name / f"part-{part}.json"
            path.write_text("\n".join(lines[part::3]) + "\n")
        addresses[name] = f"json:{tmp_path / name}"
    sinks = {"ctr": f"json:{tmp_path / 'out'}"}
    given = Settings.of("ctr", tmp_path / "store", addresses, sinks, available_now=True)
    summary = run(in_python(), given, context=spark)
    assert (summary.late, summary.dead_letters) == (0, 0)
    rows = [
        json.loads(line)
        for path in sorted((tmp_path / "out").rglob("*.jsonl"))
        for line in path.read_text().splitlines()
    ]
    assert windows(row["value"] for row in rows) == true_rates(arrivals)


# -- the rules, one by one ------------------------------------------------------------------------


def serve(number: int, at: int, user: str = "ann", ads: Sequence[str] = ("a", "b")) -> Arrival:
    page = {"serve": f"s{number}", "query": "shoes", "ads": list(ads)}
    return "serves", {**page, "user": user, "time": START + at}


def click(number: int, at: int, ad: str = "a") -> Arrival:
    return "clicks", {"serve": f"s{number}", "ad": ad, "time": START + at}


def counted(app: Callable[[], App], *arrivals: Arrival) -> dict[str, Counts]:
    """Returns the counts of each ad of the query in the first hour. The truth agrees if the records
    are in order."""
    later = (serve(999, 2 * HOUR, "zoe", ["over"]), click(999, 2 * HOUR + MINUTE, "over"))
    found = on_reference(app(), [*arrivals, *later])
    in_order = sorted(arrivals, key=lambda one: one[1]["time"]) == list(arrivals)
    if in_order:
        assert found == true_rates([*arrivals, *later])
    return {ad: counts for (until, _, ad), counts in found.items() if until == START + HOUR}


@both
def test_a_click_is_counted_for_its_ad(app: Callable[[], App]) -> None:
    """A serve is an impression of each ad that it shows, a click one of its own."""
    assert counted(app, serve(1, 0), click(1, 700, "b")) == {"a": (1, 0), "b": (1, 1)}


@both
def test_a_click_without_its_serve_is_not_counted(app: Callable[[], App]) -> None:
    """Neither a click without any serve nor one more than half an hour after it counts."""
    late = click(1, HOUR // 2 + 1)
    assert counted(app, serve(1, 0), click(2, 700), late) == {"a": (1, 0), "b": (1, 0)}
    on_time = click(1, HOUR // 2)
    assert counted(app, serve(1, 0), on_time) == {"a": (1, 1), "b": (1, 0)}


def test_a_click_that_comes_before_its_serve_finds_it() -> None:
    """In order of arrival, whichever of the two comes first."""
    app = in_python()
    app.order = "arrival"
    serves, clicks = serve(1, 0), click(1, 700)
    engine = InProcess(app.checked())
    for source, record in (clicks, serves):
        engine.batch([Event(source, record["time"] * 1_000, record["serve"], record)])
    found = [(event.key, event.value["clicks"]) for event in engine.streams["counted"]]
    assert sorted(found) == [("shoes|a", 0), ("shoes|a", 1), ("shoes|b", 0)]


@both
def test_a_click_sooner_than_anyone_reads_is_not_counted(app: Callable[[], App]) -> None:
    """Half a second is the least."""
    assert counted(app, serve(1, 0), click(1, 499))["a"] == (1, 0)
    assert counted(app, serve(1, 0), click(1, 500))["a"] == (1, 1)


@both
def test_a_click_on_what_was_not_shown_is_not_counted(app: Callable[[], App]) -> None:
    """The click did not come from the page."""
    assert counted(app, serve(1, 0), click(1, 700, "c")) == {"a": (1, 0), "b": (1, 0)}


@both
def test_a_user_of_too_many_pages_is_out_for_an_hour(app: Callable[[], App]) -> None:
    """The 21st serve of a minute is the first that is not counted; others are not touched."""
    many = [serve(n, n * 100) for n in range(30)]
    other = serve(50, 10_000, "bob", ["a"])
    after = serve(60, 40 * MINUTE)
    assert counted(app, *many, other, after)["a"] == (21, 0)
    spread = [serve(n, n * MINUTE // 20) for n in range(100)]
    assert counted(app, *spread)["a"] == (100, 0)


@both
def test_a_user_of_too_many_clicks_is_out_for_an_hour(app: Callable[[], App]) -> None:
    """The 11th click of a minute is the first that is not counted, and serves no more are."""
    clicks = [click(1, 1_000 + n * 100) for n in range(20)]
    assert counted(app, serve(1, 0), *clicks, serve(2, 10 * MINUTE))["a"] == (1, 10)


@both
def test_a_bot_may_come_back_when_its_hour_is_over(app: Callable[[], App]) -> None:
    """An hour after the serve that was too many."""
    many = [serve(n, n * 100) for n in range(21)]
    back = [serve(30, 2_000 + HOUR - 1), serve(31, 2_000 + HOUR)]
    over = serve(99, 2 * HOUR, "zoe", ["over"]), click(99, 2 * HOUR + MINUTE, "over")
    arrivals = [*many, *back, *over]
    found = on_reference(app(), arrivals)
    assert found == true_rates(arrivals)
    assert found[START + 2 * HOUR, "shoes", "a"] == (21, 0)


@both
def test_a_window_is_of_24_slots(app: Callable[[], App]) -> None:
    """An hour leaves the window a day later; a query with nothing in it is put out no more."""
    arrivals = [
        serve(1, 0),
        click(1, 30_000),
        serve(2, 5 * HOUR),
        serve(3, 40 * HOUR, "zoe", ["over"]),
        click(3, 40 * HOUR + MINUTE, "over"),
    ]
    found = on_reference(app(), arrivals)
    assert found == true_rates(arrivals)
    of_a = {
        (until - START) // HOUR: counts for (until, _, ad), counts in found.items() if ad == "a"
    }
    assert {hour: of_a[hour] for hour in (1, 5, 6, 24, 25, 29)} == {
        1: (1, 1),
        5: (1, 1),
        6: (2, 1),
        24: (2, 1),
        25: (1, 0),
        29: (1, 0),
    }
    assert max(of_a) == 29
