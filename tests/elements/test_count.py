"""count: how many events came for a key."""

from __future__ import annotations

from pathlib import Path

import pytest
from elements.both import check_engine_is_reference, cuttings, lanes
from elements.example_files import check_page, run_example, told
from generated_cases import examples
from hypothesis import given, settings
from hypothesis import strategies as st

import millstream as ms
from millstream.app_file.app_file import read_app
from millstream.elements import Count
from millstream.engine.horizon import Lane
from millstream.errors import DefinitionError

END = 709
"""A time at which no `every` of these tests ends, nor just after it."""

clicks = st.lists(
    st.tuples(st.integers(0, 200) | st.integers(0, 600), st.sampled_from(["a", "b", "c|d", "é"])),
    max_size=25,
)
schedules = st.sampled_from([(None, 1), (None, 3), (7, None), (16, None), (100, 2), (None, None)])
Clicks = list[tuple[int, str]]
Schedule = tuple[int | None, int | None]


def app_of(schedule: Schedule, keys: object, lateness: str = "0s") -> ms.App:
    every, every_events = schedule
    app = ms.App("counting", order="event-time")
    app.source("clicks", lateness=lateness)
    app.output("counts")
    app.add(
        Count(),
        keys=keys,
        name="count",
        publishes="counts",
        every=None if every is None else f"{every}us",
        every_events=every_events,
    )
    return app


def events_of(given: Clicks, closing: bool = True) -> list[ms.Event]:
    """The clicks, and one at the end, so that time goes on to it."""
    end = [(END, "end")] if closing else []
    return [ms.Event("clicks", ts, user, {"user": user}) for ts, user in given + end]


def counts(given: Clicks, schedule: Schedule, later: int) -> list[tuple[int, str, int]]:
    """The definition of count's output: (ts, key, count)."""
    every, every_events = schedule
    emitted = []
    for key in {user for _, user in given}:
        times = sorted(ts + later for ts, user in given if user == key)
        if every_events is not None:
            for n in range(every_events, len(times) + 1, every_events):
                emitted.append((times[n - 1] + 1, key, n))
        if every is not None:
            for end in range(every, END + 1, every):
                if times[0] < end:
                    emitted.append((end, key, sum(time < end for time in times)))
    return sorted(emitted)


@settings(max_examples=examples(60))
@given(given=clicks, schedule=schedules, keyed=st.booleans())
def test_it_counts_as_defined(given: Clicks, schedule: Schedule, keyed: bool) -> None:
    """At the end of every t, and at every n-th event, it emits how many events have come."""
    app = app_of(schedule, {"clicks": "user" if keyed else "@key"})
    run = ms.testing.run(app, events_of(given))
    emitted = [(e.ts, e.key, e.value["count"]) for e in run.stream("counts") if e.key != "end"]
    assert sorted(emitted) == counts(given, schedule, later=int(keyed))
    assert all(e.value == {"key": e.key, "count": e.value["count"]} for e in run.stream("counts"))
    assert run.dead_letters == []


@settings(max_examples=examples(60))
@given(
    given=clicks,
    schedule=schedules,
    cuts=cuttings,
    shards=st.integers(1, 5),
    lane=lanes,
    lateness=st.sampled_from(["0s", "50us", "1s"]),
)
def test_the_engine_counts_as_the_reference(
    given: Clicks, schedule: Schedule, cuts: list[int], shards: int, lane: Lane, lateness: str
) -> None:
    """For any batches and shards, in event-time order the engine gives the same."""
    app = app_of(schedule, {"clicks": "user"}, lateness)
    check_engine_is_reference(app, events_of(given, closing=False), cuts, shards, lane)


def test_it_publishes_to_all_that_it_was_told() -> None:
    """With a stream and an outside store, both have the counts."""
    app = ms.App("counting")
    app.source("clicks")
    app.output("counts")
    app.add(Count(), keys={"clicks": "user"}, every_events=1, publishes="counts", publish="outside")
    run = ms.testing.run(app, events_of([(1, "a")], closing=False))
    assert [e.value for e in run.stream("counts")] == [{"key": "a", "count": 1}]
    assert [e.value for e in run.stream("outside")] == [{"key": "a", "count": 1}]


def test_an_event_without_its_key_is_a_dead_letter() -> None:
    """An event without the keyed attribute is not counted, and kept as a dead letter."""
    run = ms.testing.run(app_of((None, 1), {"clicks": "user"}), [("clicks", 1, "", {"name": "a"})])
    assert run.stream("counts") == []
    (letter,) = run.dead_letters
    assert "the value has no field 'user'" in letter.error


def test_what_is_kept_cannot_be_configured(tmp_path: Path) -> None:
    """A file that sets the count is refused, at its line."""
    file = tmp_path / "app.toml"
    file.write_text(
        "[app]\nname = 'x'\n[streams.clicks]\nsource = true\n"
        "[elements.count]\nelement = 'count'\nkeys = { clicks = 'user' }\ncount = 5\n"
    )
    with pytest.raises(DefinitionError, match=r"app\.toml:8: .*: count must be left out"):
        read_app(file)


def test_the_example_emits_what_the_page_says() -> None:
    """examples/elements/count.toml over its data gives the lines of docs/elements/count.md."""
    check_page("count.md", "count")
    run = run_example("count")
    assert [event.value for event in run.stream("counts")] == told("count.md")
    assert run.dead_letters == []
