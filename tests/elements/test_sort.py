"""sort and merge: the two halves of top, each alone."""

from __future__ import annotations

from typing import Any

import pytest
from elements.both import check_engine_is_reference, cuttings, lanes
from elements.example_files import check_page, run_example
from generated_cases import examples
from hypothesis import given, settings
from hypothesis import strategies as st

import millstream as ms
from millstream.elements import Merge, Sort
from millstream.engine.horizon import Lane
from millstream.errors import DefinitionError

Scores = list[tuple[int, str, str, int]]
"""(ts, country, player, points) of each event."""
scores = st.lists(
    st.tuples(
        st.integers(0, 60),
        st.sampled_from(["DE", "US"]),
        st.sampled_from("abcd"),
        st.integers(0, 9),
    ),
    max_size=15,
)


def app_of(size: int, spare: int = 9, **options: Any) -> ms.App:
    """The best of each country, and of all."""
    app = ms.App("sorting", order="event-time")
    app.source("scores", lateness="20us")
    app.output("world")
    sort = Sort(size=size, by="points", of="who.player", spare=spare)
    app.add(sort, keys={"scores": "who.country"}, name="sort", publishes="lists", **options)
    app.add(Merge(size=size), keys={"lists": "*"}, name="merge", publishes="world")
    return app


def events_of(given: Scores) -> list[ms.Event]:
    return [
        ms.Event(
            "scores", ts, "", {"who": {"country": country, "player": player}, "points": points}
        )
        for ts, country, player, points in given
    ]


def best(given: Scores, until: int, size: int) -> list[list[Any]]:
    """The best by the latest points, of one microsecond the greatest: a definition."""
    latest = {
        player: max((ts, points) for ts, _, who, points in given if who == player and ts <= until)
        for ts, _, player, _ in given
        if ts <= until
    }
    ranked = sorted(latest, key=lambda player: (-latest[player][1], player))
    return [[player, latest[player][1]] for player in ranked[:size]]


def changes(lists: list[tuple[int, list[Any]]]) -> list[tuple[int, list[Any]]]:
    """Returns the lists that differ from their predecessor. The first predecessor is empty."""
    tops = [[], *(top for _, top in lists)]
    return [one for before, one in zip(tops, lists, strict=False) if one[1] != before]


@settings(max_examples=examples(60))
@given(given=scores, size=st.integers(1, 3))
def test_a_list_for_each_key_as_defined(given: Scores, size: int) -> None:
    """With room to spare, each change of a key's list is emitted, numbered, with its key."""
    run = ms.testing.run(app_of(size), events_of(given))
    for country in ("DE", "US"):
        mine = [one for one in given if one[1] == country]
        lists = changes([(ts + 2, best(mine, ts, size)) for ts in sorted({m[0] for m in mine})])
        emitted = [event for event in run.stream("lists") if event.key == country]
        # Several of one microsecond are several lists, of which the one sent last counts.
        final = {e.ts: e.value for e in sorted(emitted, key=lambda e: int(e.value["sent"]))}
        assert changes([(ts, value["top"]) for ts, value in final.items()]) == lists
        assert [event.value["sent"] for event in emitted].count(1) == min(len(emitted), 1)
        assert all(e.value["key"] == country and e.value["exact"] for e in emitted)
    assert run.dead_letters == []


@settings(max_examples=examples(60))
@given(given=scores, size=st.integers(1, 3))
def test_lists_are_merged_as_defined(given: Scores, size: int) -> None:
    """The merged list is that of the lists of all keys, an item with its greatest value."""
    run = ms.testing.run(app_of(size), events_of(given))
    merged: dict[str, int] = {}
    for country in ("DE", "US"):
        for player, points in best([one for one in given if one[1] == country], 99, size):
            merged[player] = max(points, merged.get(player, 0))
    wanted = sorted(([player, points] for player, points in merged.items()), key=_rank)[:size]
    emitted = [event.value for event in run.stream("world")]
    assert emitted[-1:] == ([{"key": "", "top": wanted, "exact": True}] if given else [])


def _rank(one: list[Any]) -> tuple[int, str]:
    return -one[1], one[0]


@settings(max_examples=examples(30))
@given(
    given=scores,
    spare=st.integers(0, 2),
    options=st.sampled_from([{}, {"every": "7us"}, {"every_events": 3}, {"ttl": "20us"}]),
    cuts=cuttings,
    lane=lanes,
    shards=st.integers(1, 5),
)
def test_the_engine_gives_what_the_reference_gives(
    given: Scores, spare: int, options: Any, cuts: list[int], lane: Lane, shards: int
) -> None:
    """For any batches and shards, in event-time order the engine gives the same."""
    app = app_of(2, spare=spare, **options)
    check_engine_is_reference(app, events_of(given), cuts, shards, lane)


def test_lists_of_two_elements_with_the_same_key_are_merged() -> None:
    """Lists are told apart by their stream and key, so one does not replace the other."""
    app = ms.App("merging")
    app.source("mine")
    app.source("yours")
    app.output("world")
    app.add(Merge(), keys={"mine": "*", "yours": "*"}, name="merge", publishes="world")
    lists = [
        ("mine", 1, "", {"key": "x", "top": [["a", 1]]}),
        ("yours", 2, "", {"key": "x", "top": [["b", 2]]}),
    ]
    assert ms.testing.run(app, lists).stream("world")[-1].value["top"] == [["b", 2], ["a", 1]]


def test_merge_says_its_list_again() -> None:
    """With every=, it emits its list at the end of each slot too, changed or not."""
    app = ms.App("merging", order="event-time")
    app.source("lists")
    app.output("world")
    app.add(Merge(), keys="lists", name="merge", publishes="world", every="10us")
    sent = {"key": "x", "top": [["a", 1]]}
    run = ms.testing.run(app, [("lists", 1, "k", sent), ("lists", 25, "other", sent)])
    assert [event.ts for event in run.stream("world") if event.key == "k"] == [2, 10, 20]


@pytest.mark.parametrize(
    "value",
    [
        *(None, {}, {"top": []}, {"key": "x"}, [["a", 1]], {"key": 5, "top": []}),
        *({"key": "x", "top": top} for top in (5, ["ab"], [["a"]], [["a", "1"]], [[1, 1]])),
        *({"key": "x", "top": [], "left_out": one} for one in (5, [1], ["a", 1], [True, "a"])),
        {"key": "x", "top": [], "sent": "one"},
    ],
)
def test_what_is_no_list_is_a_dead_letter(value: Any) -> None:
    """merge accepts only the lists of sort. Other events do not disturb them."""
    app = ms.App("merging")
    app.source("lists")
    app.output("world")
    app.add(Merge(), keys="lists", name="merge", publishes="world")
    good = {"key": "y", "top": [["a", 1]]}
    run = ms.testing.run(app, [("lists", 1, "k", value), ("lists", 2, "k", good)])
    (dead,) = run.dead_letters
    assert "must be a list that an element 'sort' sent" in dead.error
    assert [event.value["top"] for event in run.stream("world")] == [[["a", 1]]]


def test_wrong_configurations_are_refused() -> None:
    """The errors are raised when the elements are made."""
    with pytest.raises(DefinitionError, match=r"^element Merge: size must be 1 or more; got 0"):
        Merge(size=0)
    with pytest.raises(DefinitionError, match=r"^element Sort: item_ttl must be a duration"):
        Sort(item_ttl="soon")
    with pytest.raises(DefinitionError, match=r"^element Sort: item_ttl must be a duration over 0"):
        Sort(item_ttl="0s")
    with pytest.raises(DefinitionError, match=r"^element Sort: spare must be 0 or more; got -1"):
        Sort(spare=-1)


def test_a_slate_outlives_its_items() -> None:
    """Or whoever has the list would never hear that the last of them has gone."""
    with pytest.raises(DefinitionError, match=r"^element 'sort': ttl must be longer than item_ttl"):
        sorted_for("10s", ttl="10s")
    sorted_for("10s", ttl="11s")
    with pytest.raises(DefinitionError, match=r"item_ttl and every together.*; got '13s'"):
        sorted_for("10s", ttl="13s", every="3s")
    sorted_for("10s", ttl="14s", every="3s")


def sorted_for(item_ttl: str, **options: Any) -> None:
    app = ms.App("sorting")
    app.source("scores")
    app.add(Sort(item_ttl=item_ttl), keys="scores", name="sort", publishes="lists", **options)


def test_the_examples_are_what_the_page_shows() -> None:
    """examples/elements/sort.toml and merge.toml give the best of each country, and of all."""
    check_page("top.md", "sort")
    check_page("top.md", "merge")
    by_country = {event.key: event.value["top"] for event in run_example("sort").stream("lists")}
    assert by_country == {"DE": [["cem", 30], ["bob", 25]], "US": [["ann", 40], ["dot", 25]]}
    world = run_example("merge").stream("world")[-1].value
    assert world == {"key": "", "top": [["ann", 40], ["cem", 30]], "exact": True}
