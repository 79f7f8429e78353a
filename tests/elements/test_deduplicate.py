"""Deduplicate: the first event of an id goes on, its repeats do not."""

from __future__ import annotations

from typing import Any

import pytest
from elements.both import check_engine_is_reference, cuttings, lanes, run_in_batches
from elements.example_files import check_page, run_example, told
from generated_cases import examples
from hypothesis import given, settings
from hypothesis import strategies as st

import millstream as ms
from millstream.codec import encode_value
from millstream.elements import Deduplicate
from millstream.engine.horizon import Lane
from millstream.errors import DefinitionError
from millstream.model.event import Event

SHARDS = st.integers(1, 5)
LATENESSES = st.sampled_from(["0s", "10us", "1m"])
"""The lateness of the sources: some events are late, few are, or all wait for the end."""
some_events = st.lists(
    st.builds(
        lambda ts, key, name, n: Event("orders", ts, key, {"shop": key, "id": name, "n": n}),
        st.integers(0, 60),
        st.sampled_from("abc"),
        st.sampled_from("xy"),
        st.integers(0, 2),
    ),
    max_size=30,
)
withins = st.integers(1, 20)


def deduplicating(
    keys: Any = "orders",
    *,
    lateness: str = "0s",
    order: Any = "event-time",
    within: str = "10us",
    publishes: Any = None,
    ttl: str | None = None,
    **given: Any,
) -> ms.App:
    app = ms.App("deduplicating", order=order)
    app.source("orders", lateness=lateness)
    if publishes is None:
        publishes = ["first", "again"] if "repeats_to" in given else "first"
    for stream in [publishes] if isinstance(publishes, str) else publishes:
        app.output(stream)
    element = Deduplicate(within=within, **given)
    app.add(element, keys=keys, publishes=publishes, name="deduplicate", ttl=ttl)
    return app


def by_content(events: list[Event]) -> list[Event]:
    return sorted(events, key=lambda one: (one.ts, encode_value(one.value), one.key))


def first_and_again(
    events: list[Event], within: int, of: str | None, hop: int
) -> tuple[list[Event], list[Event]]:
    """The definition: an event is a repeat if its id went on at most `within` before it."""
    passed: dict[tuple[str, str], int] = {}
    first, again = [], []
    for _, ts, key, value in by_content(events):
        name = (key, "" if of is None else value[of])
        is_repeat = name in passed and ts - passed[name] <= within
        if not is_repeat:
            passed[name] = ts
        out = again if is_repeat else first
        out.append(Event("again" if is_repeat else "first", ts + hop + 1, key, value))
    return by_content(first), by_content(again)


@settings(max_examples=examples(60))
@given(some_events, withins, st.sampled_from([None, "id"]), st.booleans())
def test_the_first_goes_on(events: list[Event], within: int, of: str | None, keyed: bool) -> None:
    """Events are parted into first ones and repeats as the definition says; when their time is
    over, nothing is kept."""
    keys = {"orders": "shop"} if keyed else "orders"
    end = Event("orders", 61 + within, "end", {"shop": "end", "id": "z", "n": 0})
    app = deduplicating(keys, within=f"{within}us", of=of, repeats_to="again")
    run = ms.testing.run(app, [*events, end])
    first, again = first_and_again([*events, end], within, of, int(keyed))
    assert run.stream("first") == first
    assert run.stream("again") == again
    assert set(run.slates("deduplicate")) <= {"end"}
    assert not run.dead_letters


@settings(max_examples=examples(60))
@given(some_events, st.sampled_from([None, "id"]))
def test_what_is_dropped_is_counted(events: list[Event], of: str | None) -> None:
    """Without a stream for them, repeats are counted in their key's slate."""
    run = ms.testing.run(deduplicating(within="1h", of=of), events)
    first, again = first_and_again(events, 60, of, 0)
    assert run.stream("first") == first
    slates = run.slates("deduplicate")
    expected = {key: sum(one.key == key for one in again) for key in slates}
    assert {key: slate.dropped for key, slate in slates.items()} == expected
    assert set(slates) == {one.key for one in events}


@settings(max_examples=examples(60))
@given(some_events, withins, st.sampled_from([None, "id"]), LATENESSES, cuttings, SHARDS, lanes)
def test_on_the_engine(
    events: list[Event],
    within: int,
    of: str | None,
    lateness: str,
    cuts: list[int],
    shards: int,
    lane: Lane,
) -> None:
    """In event-time order the engine gives what the reference gives, however it runs."""
    app = deduplicating(within=f"{within}us", of=of, lateness=lateness)
    check_engine_is_reference(app, events, cuts, shards, lane)


def test_a_busy_key_is_bounded_by_time() -> None:
    """For a key with a steady flow of ids, at most the ids of twice the bound are kept."""
    events = [("orders", ts, "a", {"id": ts}) for ts in range(100)]
    run = ms.testing.run(deduplicating(of="id"), events)
    assert min(run.slate("deduplicate", "a").passed.values()) > 100 - 2 * 10 - 2


def test_what_comes_later_may_be_older() -> None:
    """In order of arrival an older event, up to the bound, is a repeat; then it is not, and the
    time of the newer one is kept."""
    app = deduplicating(order="arrival", within="30us")
    events = [Event("orders", ts, "a", {"n": ts}) for ts in (50, 20, 19, 80)]
    engine = run_in_batches(app, events, [1, 2, 3], 1, "one-task")
    assert [one.value["n"] for one in engine.streams["first"]] == [50, 19]


def test_an_event_without_an_id_is_a_dead_letter() -> None:
    """With `of`, an event that has no such field, or no id in it, is refused and said why."""
    run = ms.testing.run(
        deduplicating(of="id"), [("orders", 0, "a", {}), ("orders", 1, "a", {"id": [1]})]
    )
    one, two = (letter.error for letter in run.dead_letters)
    assert "element 'deduplicate': the value has no field 'id'" in one
    assert "element 'deduplicate': of: key must be text or a whole number; got list [1]" in two
    assert run.slates("deduplicate") == {}


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"within": "soon"}, "element Deduplicate: within must be a duration such as .*'soon'"),
        ({"within": "0s"}, "element Deduplicate: within must be a duration over 0; got '0s'"),
        ({"of": 5}, "element Deduplicate: of must be text; got int 5"),
        ({"of": ""}, "element Deduplicate: of must name a field or a dotted path; got ''"),
        ({"of": "a..b"}, "element Deduplicate: of must name a field or a dotted path; got 'a..b'"),
        ({"ttl": "5us"}, "element Deduplicate: ttl must be as long as within or longer.*'5us'"),
        (
            {"repeats_to": "again", "publishes": "first"},
            "publishes must name the stream of repeats_to, 'again', and .*; got 'first'",
        ),
    ],
)
def test_what_is_refused(given: dict[str, Any], error: str) -> None:
    """A wrong configuration is refused when the element is added, and the error says what to do."""
    with pytest.raises(DefinitionError, match=error):
        deduplicating(**given)


def test_the_example_emits_what_the_page_says() -> None:
    """The example file over its data gives the lines of docs/elements/deduplicate.md."""
    check_page("deduplicate.md", "deduplicate")
    run = run_example("deduplicate")
    assert [event.value for event in run.stream("taken")] == told("deduplicate.md")
    assert run.dead_letters == []
