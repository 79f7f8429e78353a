"""top: the best items of all, sorted in shards and merged."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from elements.both import check_engine_is_reference, cuttings, lanes
from elements.example_files import check_page, run_example, told
from engine.in_process import InProcess
from generated_cases import examples
from hypothesis import given, settings
from hypothesis import strategies as st

import millstream as ms
from millstream.app_file.app_file import read_app
from millstream.codec import decode_value
from millstream.elements import Top
from millstream.engine.horizon import Lane
from millstream.errors import DefinitionError
from millstream.stores.layout import slates_of, unpack_slate

Told = tuple[int, str, float]
"""(ts, item, value): what an event tells."""
END = 709
"""A time at which no `every` of these tests ends, nor just after it."""

times = st.integers(0, 30) | st.integers(0, 600)
items = st.sampled_from(["a", "b", "c", "d", "e", "f|", "é"])
told_rising = st.lists(st.tuples(times, items, st.integers(0, 9)), max_size=25).map(
    lambda given: rising(given)
)
told_any = st.lists(
    st.tuples(times, items, st.integers(-2, 12) | st.sampled_from([0.5, 1e9])), max_size=25
)
told_falling = st.lists(
    st.tuples(st.integers(0, 40), st.sampled_from("abcd"), st.integers(0, 6)),
    min_size=5,
    max_size=20,
)
sizes, shard_counts = st.integers(1, 4), st.integers(1, 5)
schedules = st.sampled_from([{}, {"every_events": 2}, {"every": "7us"}, {"every": "100us"}])
lifetimes = st.sampled_from([None, 3, 40])


def rising(given: list[tuple[int, str, int]]) -> list[Told]:
    """Counts of items, from how many more there are each time."""
    totals: defaultdict[str, int] = defaultdict(int)
    counts: list[Told] = []
    for ts, item, more in sorted(given):
        totals[item] += more
        counts.append((ts, item, totals[item]))
    return counts


def app_of(
    keys: object = "counts", order: Any = "event-time", options: Any = None, **configured: Any
) -> ms.App:
    app = ms.App("sorting", order=order)
    app.source("counts", lateness="30us")
    app.output("tops")
    element = Top(**configured)
    app.add(element, keys=keys, name="top", publishes="tops", **(options or {}))
    return app


def events_of(given: list[Told], group: str = "") -> list[ms.Event]:
    return [
        ms.Event("counts", ts, "x", {"key": item, "count": value, "group": group})
        for ts, item, value in given
    ]


def best(
    given: list[Told], now: int, size: int, ttl: int | None = None, above: float | None = None
) -> list[list[Any]]:
    """The list at a time, as a definition: by the latest values, of one microsecond the greatest.

    Events arrive at a sorter one microsecond after their time.
    """
    latest: dict[str, tuple[int, float]] = {}
    for ts, item, value in given:
        if ts + 1 <= now:
            latest[item] = max(latest.get(item, (0, 0.0)), (ts + 1, value))
    alive = [
        [item, value]
        for item, (ts, value) in latest.items()
        if (ttl is None or now - ts <= ttl) and (above is None or value > above)
    ]
    return sorted(alive, key=lambda one: (-one[1], one[0]))[:size]


def changes(lists: list[tuple[int, list[Any]]]) -> list[tuple[int, list[Any]]]:
    """Returns the lists that differ from their predecessor. The first predecessor is empty."""
    before: list[Any] = []
    changed = []
    for at, top in lists:
        if top != before:
            changed.append((at, top))
        before = top
    return changed


def exact_lists(run: ms.testing.Run) -> list[tuple[int, list[Any]]]:
    """Returns the emitted lists, after checking that each is marked exact."""
    events = run.stream("tops")
    assert run.dead_letters == []
    assert all(e.value == {"key": "", "top": e.value["top"], "exact": True} for e in events)
    return [(event.ts, event.value["top"]) for event in events]


@settings(max_examples=examples(50))
@given(given=told_rising, size=sizes, shards=shard_counts)
def test_rising_counts_as_defined(given: list[Told], size: int, shards: int) -> None:
    """While counts only rise, each change of the list is emitted at once, exact, equal ones by
    item; also when several counts of an item are of the same microsecond."""
    run = ms.testing.run(app_of(size=size, shards=shards), events_of(given))
    at_events = [(ts + 3, best(given, ts + 1, size)) for ts in sorted({ts for ts, _, _ in given})]
    assert exact_lists(run) == changes(at_events)


@settings(max_examples=examples(50))
@given(given=told_rising, size=sizes, shards=shard_counts, every=st.sampled_from([7, 16, 100]))
def test_every_slot_as_defined(given: list[Told], size: int, shards: int, every: int) -> None:
    """With every=, the list as it is at the end of each slot, one for all shards, if changed."""
    app = app_of(size=size, shards=shards, options={"every": f"{every}us"})
    given = [*given, (END, "a", 1_000)]
    run = ms.testing.run(app, events_of(given))
    ends = range(every, END, every)
    assert exact_lists(run) == changes([(end + 1, best(given, end - 1, size)) for end in ends])


@settings(max_examples=examples(50))
@given(
    given=told_any,
    size=sizes,
    shards=shard_counts,
    ttl=lifetimes,
    above=st.sampled_from([None, 0, 3.5]),
    every=st.sampled_from([None, 16]),
)
def test_room_for_all_as_defined(
    given: list[Told],
    size: int,
    shards: int,
    ttl: int | None,
    above: float | None,
    every: int | None,
) -> None:
    """With room to spare for every item the list is exact whatever the values do, items leave it
    when they are not heard of for ttl, and those not above a value are not in it."""
    options = {
        "every": None if every is None else f"{every}us",
        "ttl": None if ttl is None else f"{ttl}us",
    }
    app = app_of(size=size, shards=shards, spare=9, above=above, options=options)
    given = [*given, (END, "a", 1_000)]
    run = ms.testing.run(app, events_of(given))
    if every is None:
        arrivals = {ts + 1 for ts, _, _ in given}
        gone = set() if ttl is None else {at + ttl + 1 for at in arrivals}
        moments = sorted(arrivals | {at for at in gone if at < END})
        lists = [(at + 2, best(given, at, size, ttl, above)) for at in moments]
    else:
        lists = []
        for end in range(every, END, every):
            heard = [one for one in given if one[0] + 1 < end]
            lists.append((end + 1, best(heard, end, size, ttl, above)))
    assert exact_lists(run) == changes(lists)


@settings(max_examples=examples(50))
@given(
    given=told_falling,
    size=st.integers(1, 2),
    shards=st.integers(1, 2),
    spare=st.integers(0, 1),
    ttl=st.sampled_from([None, 6]),
)
def test_falling_values_are_never_called_exact_wrongly(
    given: list[Told], size: int, shards: int, spare: int, ttl: int | None
) -> None:
    """When values fall, listed items have their latest value, in order. A list that is marked exact
    is exact."""
    options = None if ttl is None else {"ttl": f"{ttl}us"}
    app = app_of(size=size, shards=shards, spare=spare, options=options)
    run = ms.testing.run(app, events_of(given))
    emitted = {event.ts: event.value for event in run.stream("tops")}
    last: dict[str, Any] = {"top": [], "exact": True}
    for now in range(1, max(ts for ts, _, _ in given) + 2):
        last = emitted.get(now + 2, last)
        everything = best(given, now, 100, ttl)
        assert [one for one in everything if one in last["top"]] == last["top"]
        if last["exact"]:
            assert last["top"] == everything[:size]


@settings(max_examples=examples(40))
@given(
    given=st.lists(
        st.tuples(st.sampled_from(["", "DE", "a|b"]), st.tuples(times, items, st.integers(0, 9))),
        max_size=20,
    ),
    shards=shard_counts,
)
def test_a_list_for_each_value_of_a_field(given: list[tuple[str, Any]], shards: int) -> None:
    """With a keyed attribute there is a list for each of its values, as if it were alone."""
    groups = {group: rising([one for of, one in given if of == group]) for group, _ in given}
    app = app_of(keys={"counts": "group"}, size=2, shards=shards)
    run = ms.testing.run(app, [e for group in groups for e in events_of(groups[group], group)])
    for group, mine in groups.items():
        last = [event.value for event in run.stream("tops") if event.key == group][-1]
        assert last == {"key": group, "top": best(mine, END, 2), "exact": True}
    assert set(run.slates("top")) == set(groups)


@settings(max_examples=examples(50))
@given(
    given=told_any,
    size=sizes,
    shards=shard_counts,
    spare=st.integers(0, 2),
    schedule=schedules,
    ttl=lifetimes,
    cuts=cuttings,
    lane=lanes,
    stored=st.integers(1, 5),
)
def test_the_engine_gives_what_the_reference_gives(
    given: list[Told],
    size: int,
    shards: int,
    spare: int,
    schedule: dict[str, Any],
    ttl: int | None,
    cuts: list[int],
    lane: Lane,
    stored: int,
) -> None:
    """For any batches, plans and shards of either kind, slates and lists are the same in event-time
    order."""
    options = schedule | ({} if ttl is None else {"ttl": f"{ttl}us"})
    app = app_of(size=size, shards=shards, spare=spare, options=options)
    check_engine_is_reference(app, events_of(given), cuts, stored, lane)


@settings(max_examples=examples(30))
@given(given=told_rising, size=sizes, cuts=cuttings, lane=lanes)
def test_in_order_of_arrival_it_ends_exact(
    given: list[Told], size: int, cuts: list[int], lane: Lane
) -> None:
    """Counts that rise in order of arrival end in the exact list, whatever the batches."""
    engine = InProcess(app_of(order="arrival", size=size).workflow(), lane=lane)
    events = events_of(given)
    edges = sorted(min(cut, len(events)) for cut in cuts)
    for start, stop in zip([0, *edges], [*edges, len(events)], strict=True):
        engine.batch(events[start:stop])
    engine.settle(final=True)
    assert merged(engine) == best(given, END, size)


def merged(engine: InProcess) -> list[Any]:
    """The list in the slate of the one that merges."""
    assert engine.store is not None
    for number in range(engine.shards):
        with engine.store.shard(number).at(engine.progress.batch) as view:
            for row, value in view.scan(slates_of("top")):
                if row == slates_of("top"):
                    top: list[Any] = decode_value(unpack_slate(value).data)["top"]
                    return top
    return []


def lists_of(given: list[Told], **how: Any) -> list[tuple[list[Any], bool]]:
    run = ms.testing.run(app_of(shards=1, **how), events_of(given))
    return [(event.value["top"], event.value["exact"]) for event in run.stream("tops")]


def test_what_falls_below_what_is_not_kept_is_not_exact() -> None:
    """An item stays in the list with its new value. The list is marked exact again once it is."""
    given: list[Told] = [(1, "a", 5), (10, "b", 3), (20, "a", 1), (30, "b", 4), (40, "b", 2)]
    wanted = [([["a", 5]], True), ([["a", 1]], False), ([["b", 4]], True), ([["b", 2]], False)]
    assert lists_of(given, size=1) == wanted
    spared = [([["a", 5]], True), ([["b", 3]], True), ([["b", 4]], True), ([["b", 2]], True)]
    assert lists_of(given, size=1, spare=1) == spared


def test_what_is_not_kept_is_forgotten_with_time() -> None:
    """Once all that was left out is older than ttl, it does not count against the list."""
    given: list[Told] = [(1, "a", 5), (10, "b", 3), (11, "a", 1), (99, "a", 1)]
    later = [([["a", 1]], True), ([], True), ([["a", 1]], True)]
    lists = lists_of(given, size=1, options={"ttl": "20us"})
    assert lists == [([["a", 5]], True), ([["a", 1]], False), *later]
    given = [(1, "a", 5), (10, "b", 3), (15, "c", 9), (25, "c", 1)]
    lists = lists_of(given, size=1, options={"ttl": "20us"})
    assert lists == [([["a", 5]], True), ([["c", 9]], True), ([["c", 1]], False)]


def test_many_lists_in_the_same_microsecond() -> None:
    """The tenth list of a sorter is newer than its ninth, though it comes before it as text."""
    given: list[Told] = [(1, f"{number:02}", number) for number in range(12)]
    assert lists_of(given, size=20) == [(best(given, 2, 20), True)]


def test_on_the_wall_clock() -> None:
    """With clock="wall" the lists are sent when the clock says so."""
    app = app_of(size=1, options={"every": "10s", "clock": "wall"})
    run = ms.testing.run(app, events_of([(1, "a", 3), (2, "b", 5)]))
    assert run.stream("tops") == []
    run.tick(by="11s")
    assert run.stream("tops")[-1].value["top"] == [["b", 5]]


def test_the_item_may_be_the_key_of_the_event() -> None:
    """of="@key" takes the event's own key."""
    app = app_of(of="@key", by="n")
    run = ms.testing.run(app, [("counts", 1, "ann", {"n": 2}), ("counts", 2, "bob", {"n": 3.5})])
    assert run.stream("tops")[-1].value["top"] == [["bob", 3.5], ["ann", 2]]


@pytest.mark.parametrize("value", [{}, {"key": "a"}, {"key": "a", "count": "5"}, {"count": 5}, 5])
def test_what_tells_nothing_is_a_dead_letter(value: Any) -> None:
    """An event without its item or its number is kept as a dead letter."""
    run = ms.testing.run(app_of(), [("counts", 1, "", value)])
    assert run.stream("tops") == []
    assert [letter.function for letter in run.dead_letters] == ["top.keys"]


@pytest.mark.parametrize(
    ("configured", "message"),
    [
        ({"size": 0}, "size must be 1 or more; got 0"),
        ({"size": "10"}, "size must be a whole number; got str '10'"),
        ({"shards": 0}, "shards must be 1 or more; got 0"),
        ({"spare": -1}, "spare must be 0 or more; got -1"),
        ({"by": ""}, "by must name a field or a dotted path; got ''"),
        ({"of": "a."}, "of must name a field or a dotted path; got 'a.'"),
        ({"above": "x"}, "above must be a number; got str 'x'"),
    ],
)
def test_a_wrong_configuration_is_refused(configured: dict[str, Any], message: str) -> None:
    """The error is raised when the element is made."""
    with pytest.raises(DefinitionError, match=f"^element Top: {message}"):
        Top(**configured)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"keep": 5}, "element 'top': keep must be left out"),
        ({"memory": "1MB"}, "element 'top': memory must be left out"),
        ({"ttl": "soon"}, "element 'top': ttl must be a duration"),
        ({"ttl": "0s"}, "element 'top': ttl must be a duration over 0"),
        ({"ttl": "1h", "every": "1m", "clock": "wall"}, "clock must be 'event'"),
        ({"every": "0s"}, "every must be a duration over 0"),
    ],
)
def test_a_wrong_placement_is_refused(options: dict[str, Any], message: str) -> None:
    """Options that would break a list, or have no meaning, are refused when the element is
    added."""
    with pytest.raises(DefinitionError, match=message):
        app_of(options=options)


def test_it_needs_streams() -> None:
    """Without keys it is refused, as any element."""
    app = ms.App("sorting")
    with pytest.raises(
        DefinitionError, match="element 'top': keys must name the key's field for each stream"
    ):
        app.add(Top(), name="top")


def test_a_file_is_told_the_line(tmp_path: Path) -> None:
    """In a file, a wrong property is refused at its line."""
    file = tmp_path / "app.toml"
    file.write_text(
        "[app]\nname = 'x'\n[streams.counts]\nsource = true\n"
        "[elements.top]\nelement = 'top'\nkeys = 'counts'\nsize = 0\n"
    )
    with pytest.raises(
        DefinitionError, match=r"app\.toml:8: element 'top': size must be 1 or more"
    ):
        read_app(file)


def test_the_example_emits_what_the_page_says() -> None:
    """examples/elements/top.toml over its data gives the lines of docs/elements/top.md."""
    check_page("top.md", "top")
    run = run_example("top")
    assert [event.value for event in run.stream("tops")] == told("top.md")
    assert run.dead_letters == []
