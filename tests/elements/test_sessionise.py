"""Sessionise: events that follow each other closely are one session."""

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
from millstream.elements import Sessionise
from millstream.engine.horizon import Lane
from millstream.errors import DefinitionError
from millstream.model.event import Event

SHARDS = st.integers(1, 5)
LATENESSES = st.sampled_from(["0s", "10us", "1m"])
"""The lateness of the sources: some events are late, few are, or all wait for the end."""
some_events = st.lists(
    st.builds(
        lambda ts, key, page: Event("views", ts, key, {"user": key, "at": {"page": page}}),
        st.integers(0, 80),
        st.sampled_from("ab"),
        st.sampled_from([None, 1, 2, 3]),
    ),
    max_size=30,
)
gaps = st.integers(1, 15)
mosts = st.none() | st.integers(1, 40)


def sessions_of(
    keys: Any = "views",
    *,
    order: Any = "event-time",
    lateness: str = "0s",
    gap: str = "10us",
    ttl: str | None = None,
    **given: Any,
) -> ms.App:
    app = ms.App("sessions", order=order)
    app.source("views", lateness=lateness)
    app.output("sessions")
    element = Sessionise(gap=gap, **given)
    app.add(element, keys=keys, publishes="sessions", name="sessionise", ttl=ttl)
    return app


def by_content(events: list[Event]) -> list[Event]:
    return sorted(events, key=lambda one: (one.ts, encode_value(one.value), one.key))


def sessions(events: list[Event], gap: int, most: int | None, hop: int) -> list[Event]:
    """The definition: a key's events in order, cut where the gap, or the session, is too long."""
    cut: dict[str, list[list[Event]]] = {}
    for event in by_content(events):
        mine = cut.setdefault(event.key, [])
        if mine:
            long = most is not None and event.ts - mine[-1][0].ts > most
            if event.ts - mine[-1][-1].ts <= gap and not long:
                mine[-1].append(event)
                continue
        mine.append([event])
    out = []
    for key, of_key in cut.items():
        for session in of_key:
            since, until = session[0].ts + hop, session[-1].ts + hop
            over = until + gap if most is None else min(until + gap, since + most)
            value = {"key": key, "from": since, "to": until, "events": len(session)}
            pages = [one.value["at"]["page"] for one in session]
            value["at.page"] = [page for page in pages if page is not None][:3]
            out.append(Event("sessions", over + 1, key, value))
    return by_content(out)


@settings(max_examples=examples(60))
@given(some_events, gaps, mosts, st.booleans())
def test_sessions(events: list[Event], gap: int, most: int | None, keyed: bool) -> None:
    """Sessions are cut as the definition says, and are emitted when they are over."""
    keys = {"views": "user"} if keyed else "views"
    end = Event("views", 81 + gap, "end", {"user": "end"})
    limits = {} if most is None else {"most": f"{most}us"}
    app = sessions_of(keys, gap=f"{gap}us", collect="at.page", collect_most=3, **limits)
    run = ms.testing.run(app, [*events, end])
    assert run.stream("sessions") == sessions(events, gap, most, int(keyed))
    assert list(run.slates("sessionise")) == ["end"]
    assert not run.dead_letters


@settings(max_examples=examples(60))
@given(some_events, gaps, mosts, LATENESSES, cuttings, SHARDS, lanes)
def test_on_the_engine(
    events: list[Event],
    gap: int,
    most: int | None,
    lateness: str,
    cuts: list[int],
    shards: int,
    lane: Lane,
) -> None:
    """In event-time order the engine gives what the reference gives, however it runs."""
    limits = {} if most is None else {"most": f"{most}us"}
    app = sessions_of(gap=f"{gap}us", lateness=lateness, collect=["at.page"], **limits)
    check_engine_is_reference(app, events, cuts, shards, lane)


@settings(max_examples=examples(60))
@given(some_events, gaps, mosts, cuttings, SHARDS, lanes)
def test_in_order_of_arrival_no_event_is_lost(
    events: list[Event], gap: int, most: int | None, cuts: list[int], shards: int, lane: Lane
) -> None:
    """In order of arrival every event is in one session, none longer than most; those that are
    open at the end of the input come out with it."""
    limits = {} if most is None else {"most": f"{most}us"}
    app = sessions_of(order="arrival", gap=f"{gap}us", **limits)
    engine = run_in_batches(app, events, cuts, shards, lane)
    found = [one.value for one in engine.streams.get("sessions", [])]
    assert sum(one["events"] for one in found) == len(events)
    assert all(one["to"] - one["from"] <= (80 if most is None else most) for one in found)


def test_the_bounds_are_included() -> None:
    """An event at the end of the gap, or of the longest time, is of the session; one later not."""
    times = (0, 10, 20, 30, 31, 41, 52, 100)
    run = ms.testing.run(sessions_of(most="30us"), [("views", ts, "a", {}) for ts in times])
    found = [(one.ts, one.value["from"], one.value["to"]) for one in run.stream("sessions")]
    assert found == [(31, 0, 30), (52, 31, 41), (63, 52, 52)]


def test_collected_fields() -> None:
    """Each field collected is a list under its name, of at most collect_most values."""
    app = sessions_of(collect=["page", "tag"], collect_most=2)
    views = [{"page": "/a"}, {"page": "/b", "tag": "x"}, {"page": "/c"}, "no fields"]
    run = ms.testing.run(app, [("views", ts, "ann", view) for ts, view in enumerate(views)])
    run.feed([("views", 14, "bob", {})])
    (session,) = run.stream("sessions")
    assert session.value == {
        "key": "ann",
        "from": 0,
        "to": 3,
        "events": 4,
        "page": ["/a", "/b"],
        "tag": ["x"],
    }
    assert session.ts == 14


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"gap": "soon"}, "element Sessionise: gap must be a duration such as .*got 'soon'"),
        ({"gap": "0s"}, "element Sessionise: gap must be a duration over 0; got '0s'"),
        ({"most": "0s"}, "element Sessionise: most must be a duration over 0; got '0s'"),
        ({"most": 5}, "element Sessionise: most must be a duration in quotes"),
        ({"ttl": "5us"}, "element Sessionise: ttl must be as long as gap or longer.*got '5us'"),
        ({"collect": 5}, "element Sessionise: collect must be text or a list of text; got int 5"),
        ({"collect": ["a", ""]}, r"element Sessionise: collect must be a field, .*got \['a', ''\]"),
        ({"collect": "a..b"}, "element Sessionise: collect must be a field, .*got 'a..b'"),
        ({"collect": "to"}, "element Sessionise: collect must name other fields .*got to"),
        ({"collect_most": 0}, "element Sessionise: collect_most must be a whole number.*got 0"),
    ],
)
def test_what_is_refused(given: dict[str, Any], error: str) -> None:
    """A wrong configuration is refused when the element is added, and the error says what to do."""
    with pytest.raises(DefinitionError, match=error):
        sessions_of(**given)


def test_the_example_emits_what_the_page_says() -> None:
    """The example file over its data gives the lines of docs/elements/sessionise.md."""
    check_page("sessionise.md", "sessionise")
    run = run_example("sessionise")
    assert [event.value for event in run.stream("sessions")] == told("sessionise.md")
    assert run.dead_letters == []
