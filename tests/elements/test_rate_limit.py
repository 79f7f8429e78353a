"""Rate limit: passes a number of events of a key in each slot."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from elements.both import check_engine_is_reference, cuttings, lanes, run_in_batches
from elements.example_files import check_page, run_example, told
from generated_cases import examples
from hypothesis import given, settings
from hypothesis import strategies as st

import millstream as ms
from millstream.codec import encode_value
from millstream.elements import RateLimit
from millstream.engine.horizon import Lane
from millstream.errors import DefinitionError
from millstream.model.event import Event

SHARDS = st.integers(1, 5)
LATENESSES = st.sampled_from(["0s", "10us", "1m"])
"""The lateness of the sources: some events are late, few are, or all wait for the end."""
some_events = st.lists(
    st.builds(
        lambda ts, key, n: Event("calls", ts, key, {"user": key, "n": n}),
        st.integers(-20, 40),
        st.sampled_from("ab"),
        st.integers(0, 9),
    ),
    max_size=30,
)
limits = st.integers(1, 4)
pers = st.integers(1, 20)


def limiting(
    keys: Any = "calls",
    *,
    order: Any = "event-time",
    lateness: str = "0s",
    most: Any = 2,
    per: str = "10us",
    publishes: Any = None,
    ttl: str | None = None,
    **given: Any,
) -> ms.App:
    app = ms.App("limiting", order=order)
    app.source("calls", lateness=lateness)
    if publishes is None:
        publishes = ["over", "within"] if "overflow_to" in given else "within"
    for stream in [publishes] if isinstance(publishes, str) else publishes:
        app.output(stream)
    element = RateLimit(most=most, per=per, **given)
    app.add(element, keys=keys, publishes=publishes, name="limit", ttl=ttl)
    return app


def by_content(events: list[Event]) -> list[Event]:
    return sorted(events, key=lambda one: (one.ts, encode_value(one.value), one.key))


def within_and_over(
    events: list[Event], most: int, per: int, hop: int
) -> tuple[list[Event], list[Event]]:
    """The definition: the first `most` of a key in each [n * per, (n + 1) * per), and the rest."""
    taken: Counter[tuple[str, int]] = Counter()
    within, over = [], []
    for _, ts, key, value in by_content(events):
        slot = (key, (ts + hop) // per)
        taken[slot] += 1
        passes = taken[slot] <= most
        out = within if passes else over
        out.append(Event("within" if passes else "over", ts + hop + 1, key, value))
    return by_content(within), by_content(over)


@settings(max_examples=examples(60))
@given(some_events, limits, pers, st.booleans())
def test_the_first_of_each_slot_go_on(
    events: list[Event], most: int, per: int, keyed: bool
) -> None:
    """Events are parted into those within the limit and those past it as the definition says."""
    keys = {"calls": "user"} if keyed else "calls"
    app = limiting(keys, most=most, per=f"{per}us", overflow_to="over")
    run = ms.testing.run(app, events)
    within, over = within_and_over(events, most, per, int(keyed))
    assert run.stream("within") == within
    assert run.stream("over") == over
    assert not run.dead_letters


@settings(max_examples=examples(60))
@given(some_events, limits, pers)
def test_what_is_dropped_is_counted(events: list[Event], most: int, per: int) -> None:
    """Without a stream for them, events past the limit are counted in their key's slate."""
    run = ms.testing.run(limiting(most=most, per=f"{per}us"), events)
    within, over = within_and_over(events, most, per, 0)
    assert run.stream("within") == within
    dropped = {key: slate.dropped for key, slate in run.slates("limit").items()}
    assert dropped == {one.key: sum(o.key == one.key for o in over) for one in events}


@settings(max_examples=examples(60))
@given(some_events, limits, pers, LATENESSES, cuttings, SHARDS, lanes)
def test_on_the_engine(
    events: list[Event],
    most: int,
    per: int,
    lateness: str,
    cuts: list[int],
    shards: int,
    lane: Lane,
) -> None:
    """In event-time order the engine gives what the reference gives, however it runs."""
    app = limiting(most=most, per=f"{per}us", lateness=lateness, overflow_to="over", ttl="1s")
    check_engine_is_reference(app, events, cuts, shards, lane)


def test_without_a_key_the_limit_is_of_all() -> None:
    """Keyless, one element limits all events together."""
    events = [Event("calls", ts, key, {}) for ts, key in enumerate("abcd")]
    run = ms.testing.run(limiting({"calls": "*"}), events)
    assert [one.ts for one in run.stream("within")] == [2, 3]
    assert run.slate("limit", "").dropped == 2


def test_what_comes_later_may_be_older() -> None:
    """In order of arrival an event of an earlier slot counts in the latest."""
    app = limiting(order="arrival")
    events = [Event("calls", ts, "a", ts) for ts in (25, 5, 26)]
    engine = run_in_batches(app, events, [1, 2], 1, "one-task")
    assert [one.value for one in engine.streams["within"]] == [25, 5]


def test_it_passes_on_to_all_streams_but_the_one_for_the_rest() -> None:
    """Events within the limit go to all published streams except overflow_to."""
    app = limiting(overflow_to="over", publishes=["a", "over", "b"])
    run = ms.testing.run(app, [("calls", ts, "k", ts) for ts in range(3)])
    assert [[one.value for one in run.stream(to)] for to in ("a", "b", "over")] == [
        [0, 1],
        [0, 1],
        [2],
    ]


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"per": "soon"}, "element RateLimit: per must be a duration such as .*got 'soon'"),
        ({"per": "0s"}, "element RateLimit: per must be a duration over 0; got '0s'"),
        ({"most": 0}, "element RateLimit: most must be a whole number, 1 or more; got 0"),
        ({"most": "5"}, "element RateLimit: most must be a whole number; got str '5'"),
        ({"ttl": "5us"}, "element RateLimit: ttl must be as long as per or longer.*got '5us'"),
        (
            {"overflow_to": "over", "publishes": "within"},
            "publishes must name the stream of overflow_to, 'over', and .*; got 'within'",
        ),
    ],
)
def test_what_is_refused(given: dict[str, Any], error: str) -> None:
    """A wrong configuration is refused when the element is added, and the error says what to do."""
    with pytest.raises(DefinitionError, match=error):
        limiting(**given)


def test_the_example_emits_what_the_page_says() -> None:
    """The example file over its data gives the lines of docs/elements/rate_limit.md."""
    check_page("rate_limit.md", "rate_limit")
    run = run_example("rate_limit")
    assert [event.value for event in run.stream("answered")] == told("rate_limit.md")
    assert run.dead_letters == []
