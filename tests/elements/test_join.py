"""Join: pairs of events of two streams with the same key, close in time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from elements.both import check_engine_is_reference, cuttings, lanes, run_in_batches
from elements.example_files import check_page, run_example, told
from generated_cases import examples
from hypothesis import given, settings
from hypothesis import strategies as st

import millstream as ms
from millstream.codec import encode_value
from millstream.config import load
from millstream.elements import Join
from millstream.engine.horizon import Lane
from millstream.errors import DefinitionError, MillstreamError
from millstream.model.event import Event

KEYED = {"clicks": "id", "serves": "id"}


def event(stream: str, ts: int, key: str, n: int) -> Event:
    return Event(stream, ts, key, {"id": key, "side": stream, f"{stream[0]}n": n})


SHARDS = st.integers(1, 5)
LATENESSES = st.sampled_from(["0s", "10us", "1m"])
"""The lateness of the sources: some events are late, few are, or all wait for the end."""
some_events = st.lists(
    st.builds(
        event,
        st.sampled_from(["clicks", "clicks", "clicks", "serves"]),
        st.integers(0, 60),
        st.sampled_from("ab"),
        st.integers(0, 2),
    ),
    max_size=30,
)
withins = st.integers(1, 12)
hows = st.sampled_from(["inner", "left"])


def joining(
    keys: Any = ("clicks", "serves"),
    *,
    order: Any = "event-time",
    lateness: str = "0s",
    within: str = "10us",
    ttl: str | None = None,
    **given: Any,
) -> ms.App:
    app = ms.App("joining", order=order)
    app.source("clicks", lateness=lateness)
    app.source("serves", lateness=lateness)
    app.output("joined")
    join = Join(left="clicks", right="serves", within=within, **given)
    app.add(join, keys=keys, publishes="joined", name="join", ttl=ttl)
    return app


def joined(events: list[Event], within: int, how: str, hop: int) -> list[Event]:
    """The definition: every pair, and with "left" every left without one, at its time."""
    lefts = [one for one in events if one.stream == "clicks"]
    rights = [one for one in events if one.stream == "serves"]
    out = []
    for left in lefts:
        mine = [r for r in rights if r.key == left.key and abs(r.ts - left.ts) <= within]
        for right in mine:
            at = max(left.ts, right.ts)
            value = {**right.value, **left.value, "key": left.key}
            out.append(Event("joined", at + hop + 1, left.key, value))
        if how == "left" and not mine:
            value = {**left.value, "key": left.key}
            out.append(Event("joined", left.ts + within + hop + 1, left.key, value))
    return sorted(out, key=lambda one: (one.ts, encode_value(one.value), one.key))


@settings(max_examples=examples(60))
@given(some_events, withins, hows, st.booleans())
def test_every_pair_once(events: list[Event], within: int, how: str, keyed: bool) -> None:
    """Each pair within the bound is emitted once; with "left", each lone left at its time; when
    their time is over, nothing is kept."""
    end = event("clicks", 61 + within, "end", 0)
    app = joining(KEYED if keyed else ("clicks", "serves"), within=f"{within}us", how=how)
    run = ms.testing.run(app, [*events, end])
    assert run.stream("joined") == joined(events, within, how, int(keyed))
    assert list(run.slates("join")) == ["end"]
    assert not run.dead_letters


@settings(max_examples=examples(60))
@given(some_events, withins, hows, LATENESSES, cuttings, SHARDS, lanes)
def test_on_the_engine(
    events: list[Event],
    within: int,
    how: str,
    lateness: str,
    cuts: list[int],
    shards: int,
    lane: Lane,
) -> None:
    """In event-time order the engine gives the reference's pairs and slates, however it runs."""
    check_engine_is_reference(
        joining(within=f"{within}us", how=how, lateness=lateness), events, cuts, shards, lane
    )


@settings(max_examples=examples(60))
@given(some_events, cuttings, SHARDS, lanes)
def test_the_order_of_arrival_does_not_matter(
    events: list[Event], cuts: list[int], shards: int, lane: Lane
) -> None:
    """In order of arrival, events of one bound's time come in any order and all pairs are found."""
    engine = run_in_batches(joining(order="arrival", within="60us"), events, cuts, shards, lane)
    found = sorted(encode_value(one.value) for one in engine.streams.get("joined", []))
    assert found == sorted(encode_value(one.value) for one in joined(events, 60, "inner", 0))


def test_what_comes_later_may_be_older() -> None:
    """In order of arrival an older event is joined to what is kept, up to the bound and no more."""
    app = joining(order="arrival")
    events = [event("clicks", 50, "a", 1), event("serves", 40, "a", 2), event("serves", 39, "a", 3)]
    engine = run_in_batches(app, events, [1, 2], 1, "one-task")
    assert [one.value["sn"] for one in engine.streams["joined"]] == [2]


def test_a_busy_key_is_bounded_by_time() -> None:
    """For a key with a steady flow of events, at most the events of twice the bound are kept."""
    run = ms.testing.run(joining(), [event("clicks", ts, "a", ts) for ts in range(100)])
    assert min(when for when, _, _ in run.slate("join", "a").lefts) > 100 - 2 * 10 - 2


def test_ids_that_come_once_leave_nothing() -> None:
    """A serve and its click are kept until the bound has passed since each, then forgotten."""
    run = ms.testing.run(joining(), [event("serves", 0, "a", 1), event("clicks", 5, "a", 2)])
    assert vars(run.slate("join", "a")) == {
        "lefts": [(5, {"id": "a", "side": "clicks", "cn": 2}, True)],
        "rights": [(0, {"id": "a", "side": "serves", "sn": 1})],
    }
    run.feed([event("serves", 11, "b", 3)])
    assert run.slate("join", "a").rights == []
    run.feed([event("serves", 15, "b", 4)])
    assert list(run.slates("join")) == ["b"]


def test_select_names_what_is_emitted_and_kept() -> None:
    """With select the value is the key and the fields named; only those are kept."""
    select = {"query": "right.page.query", "n": "left.n", "serve": "right", "gone": "right.x.y"}
    app = joining(select=select, how="left")
    serve = {"page": {"query": "shoes", "more": 1}}
    run = ms.testing.run(app, [("serves", 0, "a", serve), ("clicks", 1, "a", {"n": 1, "m": 2})])
    expected = {"key": "a", "query": "shoes", "n": 1, "serve": serve, "gone": None}
    assert [one.value for one in run.stream("joined")] == [expected]
    assert run.slate("join", "a").lefts == [(1, {"n": 1}, True)]
    run.feed([("clicks", 20, "b", {"n": 3}), ("clicks", 40, "c", {"n": 4})])
    alone = {"key": "b", "query": None, "n": 3, "serve": None, "gone": None}
    assert run.stream("joined")[-1].value == alone


def test_a_value_without_fields_is_a_dead_letter() -> None:
    """Only objects have fields to join: the error says so, and what to use for others."""
    (letter,) = ms.testing.run(joining(), [("clicks", 0, "a", 5)]).dead_letters
    assert "stream 'clicks': the value must be an object" in letter.error
    assert "got int; use select" in letter.error


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"within": "soon"}, "element Join: within must be a duration such as .*got 'soon'"),
        ({"within": "0s"}, "element Join: within must be a duration over 0; got '0s'"),
        ({"how": "outer"}, "element Join: how must be one of 'inner', 'left'; got str 'outer'"),
        ({"keys": "clicks"}, "keys must name .*'clicks' and 'serves', and no others; got 'clicks'"),
        ({"ttl": "5us"}, "element Join: ttl must be as long as within or longer.*got '5us'"),
        ({"select": {"q": "serve.q"}}, "element Join: select must have a path .*got q = 'serve.q'"),
        (
            {"select": {"key": "left.q"}},
            "element Join: select must have a path .*got key = 'left.q'",
        ),
        ({"select": {"q": 5}}, "element Join: select must be a table; got dict"),
        ({"select": ["q"]}, "element Join: select must be a table; got list"),
    ],
)
def test_what_is_refused(given: dict[str, Any], error: str) -> None:
    """A wrong configuration is refused when the element is added, and the error says what to do."""
    with pytest.raises(DefinitionError, match=error):
        joining(**given)


def test_the_two_sides_are_two_streams() -> None:
    """A stream cannot be joined to itself."""
    with pytest.raises(DefinitionError, match="right must be another stream than left; got 'a'"):
        Join(left="a", right="a", within="1s")


def test_a_joined_click_is_keyed_by_what_its_serve_knows(tmp_path: Path) -> None:
    """With a file alone, clicks are joined and counted by the query and the ad of their serve."""
    file = tmp_path / "app.toml"
    file.write_text(
        '[app]\nname = "a"\n[streams]\nclicks.source = true\nserves.source = true\n'
        'clicks.key = "serve"\nserves.key = "serve"\n'
        '[elements.join]\nelement = "join"\nkeys = ["clicks", "serves"]\npublishes = "clicked"\n'
        'left = "clicks"\nright = "serves"\nwithin = "30m"\n'
        '[elements.count]\nelement = "count"\nkeys = { clicked = ["query", "ad"] }\n'
    )
    serve = {"serve": 1, "query": "shoes", "ad": "a1"}
    events = [("clicks", 5, "1", {"serve": 1}), ("serves", 9, "1", serve)]
    run = ms.testing.run(load(str(file)).app, [*events, ("clicks", 12, "1", {"serve": 1})])
    assert {key: slate.count for key, slate in run.slates("count").items()} == {"shoes|a1": 2}


def test_a_file_with_a_wrong_bound(tmp_path: Path) -> None:
    """In a TOML file the error has the line of the property."""
    (tmp_path / "app.toml").write_text(
        '[app]\nname = "a"\n[streams]\nclicks.source = true\nserves.source = true\n'
        '[elements.join]\nelement = "join"\nkeys = ["clicks", "serves"]\n'
        'left = "clicks"\nright = "serves"\nwithin = "soon"\n'
    )
    with pytest.raises(MillstreamError, match=r"app\.toml:11: element 'join': within must be"):
        load(str(tmp_path / "app.toml"))


def test_the_example_emits_what_the_page_says() -> None:
    """examples/elements/join.toml over its data gives the lines of docs/elements/join.md."""
    check_page("join.md", "join")
    run = run_example("join")
    assert [event.value for event in run.stream("clicked")] == told("join.md")
    assert run.dead_letters == []
