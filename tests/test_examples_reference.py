"""The examples over generated data on the reference, against plain Python of its own."""

import heapq
import importlib
import json
import re
import sys
import tomllib
import warnings
from collections import Counter, defaultdict
from datetime import datetime
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import millstream as ms

EXAMPLES = Path(__file__).parent.parent / "examples"
NAMES = ("retail", "hot_topics", "reputation", "top_urls", "http_counters")
MINUTE, DAY = 60_000_000, 86_400_000_000


def example(name: str) -> ModuleType:
    if str(EXAMPLES) not in sys.path:
        sys.path.insert(0, str(EXAMPLES))
    return importlib.import_module(name)


generate = example("generate")


def micros(text: str) -> int:
    moment = datetime.fromisoformat(text)
    return int(moment.replace(microsecond=0).timestamp()) * 1_000_000 + moment.microsecond


# -- all of them ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_an_example_builds_without_a_warning(name: str) -> None:
    """Each example is an application whose graph is whole, and says how to run it."""
    module = example(name)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert module.app.workflow().name == name
    assert f"millstream run examples/{name}.py --source " in str(module.__doc__)
    assert f"python examples/generate.py {name} " in str(module.__doc__)


@pytest.mark.parametrize("name", NAMES)
def test_an_example_has_no_dead_letters_and_no_order_of_feeding(name: str) -> None:
    """Generated data is all understood, and fed in another order gives the same result."""
    app = example(name).app
    records = list(generate.EXAMPLES[name][1](1_500, 3))
    (source,) = app.workflow().sources
    one = ms.testing.run(app, {source.name: records})
    other = ms.testing.run(app, {source.name: records[::-1]})
    assert one.dead_letters == []
    for update in app.workflow().updates:
        assert one.slates(update.name) == other.slates(update.name)
    for stream in app.workflow().streams:
        assert one.stream(stream) == other.stream(stream) != []


@pytest.mark.parametrize("name", ["hot_topics", "reputation"])
def test_what_depends_on_order_waits_long_enough(name: str) -> None:
    """Event-time order is asked for, with a lateness above the disorder of the data."""
    workflow = example(name).app.workflow()
    assert workflow.order == "event-time"
    assert all(source.lateness >= generate.DISORDER for source in workflow.sources)


# -- each of them --------------------------------------------------------------------------------


def test_retail() -> None:
    """The counts are those of the venues that name each retailer."""
    records = list(generate.checkins(5_000, 7))
    patterns = {
        "Walmart": r"wal-?mart",
        "Best Buy": r"best ?buy",
        "JCPenney": r"j\.?c\.? ?penney",
        "Target": r"target",
        "Macy's": r"macy'?s",
        "Sam's Club": r"sam'?s club",
    }
    wanted = Counter(
        retailer
        for record in records
        for retailer, pattern in patterns.items()
        if re.search(pattern, record["venue"], re.IGNORECASE)
    )
    run = ms.testing.run(example("retail").app, {"checkins": records})
    assert {key: slate.count for key, slate in run.slates("count").items()} == wanted
    assert set(wanted) == set(patterns)


def test_retail_as_a_file() -> None:
    """retail.toml names the same functions and the same graph as retail.py."""
    retail = example("retail")
    spec = tomllib.loads((EXAMPLES / "retail.toml").read_text())

    def named(reference: str) -> Any:
        module, name = reference.split(":")
        return getattr(importlib.import_module(module), name)

    app = ms.App(spec["app"]["name"])
    for name, stream in spec["streams"].items():
        if stream.pop("source", False):
            app.source(name, **stream)
        else:
            assert stream == {"output": True}
            app.output(name)
    for name, table in spec["maps"].items():
        function = named(table["function"])
        app.map(*table["subscribes"], publishes=table["publishes"], name=name)(function)
    for name, table in spec["updates"].items():
        app.update(
            *table["subscribes"],
            publishes=table["publishes"],
            slate=named(table["slate"]),
            ttl=table["ttl"],
            name=name,
        )(named(table["function"]))
    assert app == retail.app


def test_hot_topics() -> None:
    """A topic-minute is hot when it is over three times the mean of the days since it first was."""
    module = example("hot_topics")
    records = list(generate.tweets(8_000, 11))
    end = {
        "user": "end",
        "time": "2012-06-03T00:00:00+00:00",
        "text": "bye",
    }  # all minutes are over
    words = {word: topic for topic, telling in module.TOPICS.items() for word in telling}
    minutes: dict[tuple[str, int], list[int]] = defaultdict(list)
    for record in records:
        ts = micros(record["time"])
        topics = {words.get(w) for w in re.findall(r"[a-z]+", record["text"].lower())} - {None}
        for topic in topics:
            minutes[f"{topic}_{ts % DAY // MINUTE}", ts // DAY].append(ts)
    days: dict[str, dict[int, int]] = defaultdict(dict)
    wanted = []
    for (key, day), times in sorted(minutes.items(), key=lambda item: item[0][1]):
        before = days[key]
        if before:
            average = sum(before.values()) / (day - min(before))
            if len(times) / average > 3:
                ratio = len(times) / average
                value = {"count": len(times), "average": average, "ratio": ratio}
                # a microsecond to the mention, a minute to the timer, one to the count, one to here
                wanted.append(ms.Event("hot", min(times) + MINUTE + 3, key, value))
        before[day] = len(times)
    run = ms.testing.run(module.app, {"tweets": [*records, end]})
    assert sorted(run.stream("hot"), key=repr) == sorted(wanted, key=repr)
    assert any(event.key.startswith("earthquake") for event in wanted)
    assert run.slates("count") == {}, "every minute has been reported"
    for key, slate in run.slates("detect").items():
        assert slate.total_count == sum(days[key].values())
        assert slate.days == max(days[key]) - min(days[key]) + 1


def test_hot_topics_depends_on_order() -> None:
    """The same counts on other days give another result: the quiet day must come first."""
    app = example("hot_topics").app

    def tweets(*counts: int) -> list[dict[str, str]]:
        return [
            {"user": "ann", "time": f"2012-05-{27 + day}T12:00:{n:02d}Z", "text": "rain"}
            for day, count in enumerate((*counts, 1))
            for n in range(count)
        ]

    rising = ms.testing.run(app, {"tweets": tweets(2, 8)}).stream("hot")
    assert [(e.key, e.value) for e in rising] == [
        ("weather_720", {"count": 8, "average": 2.0, "ratio": 4.0})
    ]
    assert ms.testing.run(app, {"tweets": tweets(8, 2)}).stream("hot") == []


def test_reputation() -> None:
    """Every score is what going through the tweets and endorsements by time makes it."""
    records = list(generate.tweets(4_000, 5, days=0.05))
    scores: dict[str, float] = defaultdict(lambda: 1.0)
    endorsed: Counter[str] = Counter()
    line: list[tuple[int, str, str, str, Any]] = [
        (micros(r["time"]), "tweet", json.dumps(r, sort_keys=True), r["user"], r["text"])
        for r in records
    ]
    heapq.heapify(line)
    users = set()
    while line:
        ts, kind, _, user, what = heapq.heappop(line)
        users.add(user)
        if kind == "endorsement":
            scores[user] += 0.1 * what * (1 - scores[user] / 100)
            endorsed[user] += 1
            continue
        first = what.removeprefix("RT ").split()[0]
        other = first[1:].rstrip(":")
        if first.startswith("@") and other != user:
            item = (ts + 1_000_000, "endorsement", repr(scores[user]), other, scores[user])
            heapq.heappush(line, item)
    run = ms.testing.run(example("reputation").app, {"tweets": records})
    slates = run.slates("score")
    assert {user: slate.score for user, slate in slates.items()} == {u: scores[u] for u in users}
    assert {u: s.endorsements for u, s in slates.items() if s.endorsements} == endorsed
    assert max(scores.values()) > 5


def test_reputation_depends_on_order() -> None:
    """B's gain from A depends on whether C endorsed A before; within the delay it did not."""
    app = example("reputation").app

    def score_of_b(a_tweets_at: str) -> float:
        tweets = [
            {"user": "c", "time": "2012-05-27T12:00:00Z", "text": "RT @a: so true"},
            {"user": "a", "time": a_tweets_at, "text": "@b well done"},
        ]
        slate = ms.testing.run(app, {"tweets": tweets}).slate("score", "b")
        return float(slate.score)

    plain = 1 + 0.1 * 1 * (1 - 1 / 100)
    assert score_of_b("2012-05-27T11:59:00Z") == plain
    assert score_of_b("2012-05-27T12:00:00.999Z") == plain
    assert score_of_b("2012-05-27T12:00:02Z") == 1 + 0.1 * plain * (1 - 1 / 100)


def test_top_urls() -> None:
    """The ten are those of a full count, ties ordered by URL."""
    records = list(generate.tweets(5_000, 13))
    shared = Counter(
        word for record in records for word in record["text"].split() if word.startswith("http")
    )
    best = sorted(shared.items(), key=lambda item: (-item[1], item[0]))[:10]
    run = ms.testing.run(example("top_urls").app, {"tweets": records})
    assert run.slate("top", "top") == dict(best)
    assert {url: slate.count for url, slate in run.slates("count").items()} == shared
    assert len(shared) > 100


def test_top_urls_after_every_tweet() -> None:
    """The ten are exact at every moment, not only at the end, though only ten are kept."""
    run = ms.testing.run(example("top_urls").app)
    shared: Counter[str] = Counter()
    for n, record in enumerate(generate.tweets(400, 2)):
        record["time"] = n  # one after the other
        run.feed([ms.Event("tweets", n * 10, record["user"], record)])
        shared.update(word for word in record["text"].split() if word.startswith("http"))
        best = sorted(shared.items(), key=lambda item: (-item[1], item[0]))[:10]
        assert (run.slate("top", "top") or {}) == dict(best)


def test_a_url_in_a_sentence() -> None:
    """Punctuation behind a URL is not part of it, and twice in a tweet is one share."""
    text = 'See http://a.example/x, (https://b.example/y?z=1) and "http://a.example/x"!'
    run = ms.testing.run(example("top_urls").app, [("tweets", 1, "ann", {"text": text})])
    assert run.slate("top", "top") == {"http://a.example/x": 1, "https://b.example/y?z=1": 1}


def test_http_counters() -> None:
    """Requests and bytes by section and by status, in all and by minute."""
    records = list(generate.requests(4_000, 17))
    total: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    minute: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    months = {"May": "05", "Jun": "06"}
    for record in records:
        _, _, _, when, _, _, path, _, status, size, *_ = record["line"].split(" ")
        day, month, rest = when[1:].split("/")
        year, hour, minutes, _ = rest.split(":")
        section = "/" + path.partition("?")[0].split("/")[1]
        for part in (f"section:{section}", f"status:{status}"):
            for counters, key in (
                (total, part),
                (minute, f"{part}@{year}-{months[month]}-{day}T{hour}:{minutes}"),
            ):
                counters[key][0] += 1
                counters[key][1] += 0 if size == "-" else int(size)
    run = ms.testing.run(example("http_counters").app, {"requests": records})
    for name, wanted in (("total", total), ("minute", minute)):
        slates = run.slates(name)
        assert {key: [slate.requests, slate.bytes] for key, slate in slates.items()} == wanted
    assert {"section:/", "section:/products", "status:404"} <= set(total)


def test_http_counters_takes_lines_and_records() -> None:
    """A line as text, a line in a record, and a record with the fields are the same request."""
    line = '10.0.0.1 - - [27/May/2012:14:00:05 +0200] "GET /cart?x=/a HTTP/1.1" 200 70 "-" "curl"'
    fields = {"time": "2012-05-27T12:00:05Z", "path": "/cart?x=/a", "status": 200, "bytes": 70}
    app = example("http_counters").app
    for record in (line, {"line": line}, fields):
        run = ms.testing.run(app, {"requests": [record]})
        assert list(run.slates("total")) == ["section:/cart", "status:200"]
        assert run.slate("minute", "status:200@2012-05-27T12:00").bytes == 70


def test_http_counters_refuses_other_lines() -> None:
    """An invalid line is reported as bad input, and one with false data becomes a dead letter."""
    app = example("http_counters").app
    with pytest.raises(ms.InputError, match="not a line in the combined log format: 'hello'"):
        ms.testing.run(app, {"requests": ["hello"]})
    run = ms.testing.run(app, [("requests", 1, "", "hello")])
    assert [letter.function for letter in run.dead_letters] == ["parse"]


# -- the generator -------------------------------------------------------------------------------

SERIES = [generate.checkins, generate.tweets, generate.requests]


def time_in(record: dict[str, Any]) -> int:
    if "time" in record:
        return micros(record["time"])
    return micros(example("http_counters").time_of(record))


@pytest.mark.parametrize("series", SERIES)
def test_the_same_seed_gives_the_same_records(series: Any) -> None:
    """A series is fixed by its number and seed, and another seed gives another."""
    assert list(series(200, 1)) == list(series(200, 1))
    assert list(series(200, 1)) != list(series(200, 2))
    assert len(list(series(200, 1))) == 200


@pytest.mark.parametrize("series", SERIES)
def test_records_come_out_of_order_within_the_bound(series: Any) -> None:
    """Some record comes after a later one, and none by as much as DISORDER."""
    latest, behind = 0, []
    for record in series(20_000, 4, days=0.5):
        latest = max(latest, time_in(record))
        behind.append(latest - time_in(record))
    assert 0 < max(behind) < generate.DISORDER + 1_000_000 * (series is generate.requests)


def test_keys_are_skewed_and_days_have_hours() -> None:
    """The first user has many times what a middling one has, and noon has more than night."""
    records = list(generate.checkins(20_000, 4))
    users = Counter(record["user"] for record in records).most_common()
    assert users[0][1] > 50 * users[len(users) // 2][1]
    hours = Counter(record["time"][11:13] for record in records)
    assert hours["12"] > 5 * hours["03"] > 0


@pytest.mark.parametrize("name", NAMES)
def test_the_command_writes_json_lines(name: str, tmp_path: Path) -> None:
    """The files hold the series in order, and nothing half-written is left."""
    generate.main([name, "--events", "1200", "--seed", "9", "--out", str(tmp_path / "new")])
    files = sorted((tmp_path / "new").iterdir())
    assert [file.name for file in files] == ["part-000000.json", "part-000001.json"]
    written = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    assert written == list(generate.EXAMPLES[name][1](1_200, 9))


def test_the_command_writes_live(tmp_path: Path) -> None:
    """With a rate, files appear with as many records as the time asks for, at the present time."""
    given = ["--rate", "1000", "--every", "10ms", "--seconds", "0.05"]
    generate.main(["retail", *given, "--out", str(tmp_path)])
    files = list(tmp_path.iterdir())
    records = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    assert (len(files), len(records)) == (5, 50)
    assert not any(file.name.startswith(".") for file in files)
    span = [micros(record["time"]) for record in records]
    assert max(span) - min(span) < MINUTE


@pytest.mark.parametrize("every", ["100", "0ms", "soon"])
def test_the_command_refuses_a_bad_time(every: str, tmp_path: Path, capsys: Any) -> None:
    """A time without a unit is told as such."""
    with pytest.raises(SystemExit):
        generate.main(["retail", "--rate", "1", "--every", every, "--out", str(tmp_path)])
    assert "must be a time such as 100ms or 2s" in capsys.readouterr().err
