"""Columns are the same whichever form they are in, and on their way between tasks."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.codec import canonical, shards_of
from millstream.engine import columns as columns_module
from millstream.engine.cells.content_order import by_key, content_order
from millstream.engine.columns import FEW, Columns
from millstream.engine.frames import frame_of, of_frame
from millstream.engine.key_shards import key_shards

STREAMS = ("zebra", "ant")
Delivery = tuple[int, int, str, bytes]
KEYS = st.one_of(st.sampled_from(("", "a", "b", "é", "long" * 9)), st.text(max_size=3))
VALUES = st.sampled_from([b"null", b'{"b":1,"a":2}', b'{"a":2,"b":1}', b"\x00x", b"\x00", b"12"])
deliveries = st.lists(st.tuples(st.integers(0, 1), st.integers(-3, 3), KEYS, VALUES), max_size=60)


@pytest.fixture(autouse=True, scope="module", params=[FEW, 0])
def few(request: pytest.FixtureRequest) -> Iterator[None]:
    """Few events are handled as lists; with 0, they are arrays like many."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(columns_module, "FEW", request.param)
        yield


def columns(rows: list[Delivery]) -> Columns:
    return Columns(*([row[n] for row in rows] for n in range(4)))  # type: ignore[arg-type]


def rows_of(events: Columns) -> list[Delivery]:
    assert len(events) == len(events.ts)
    return list(zip(events.streams, events.ts, events.keys, events.values, strict=True))


def in_parts(rows: list[Delivery], cuts: list[int], as_arrays: bool) -> Columns:
    """The deliveries, put together from parts of either form."""
    whole = Columns()
    edges = [0, *sorted(cut % (len(rows) + 1) for cut in cuts), len(rows)]
    for number, start in enumerate(edges[:-1]):
        part = columns(rows[start : edges[number + 1]])
        if as_arrays and number % 2 == 0:
            part = of_frame(frame_of(part))
        whole.extend(part)
    return whole


@given(deliveries, st.lists(st.integers(0, 100), max_size=3), st.booleans(), st.booleans())
def test_on_the_way(rows: list[Delivery], cuts: list[int], as_arrays: bool, again: bool) -> None:
    """A frame and a stored chunk hold what was packed, also of parts and of slices of parts."""
    events = in_parts(rows, cuts, as_arrays)
    if again:
        events = events.slice(0, len(rows))
    start = len(rows) // 3
    assert rows_of(of_frame(frame_of(events))) == rows
    assert rows_of(of_frame(frame_of(events.slice(start, len(rows) - 1)))) == rows[start:-1]
    assert rows_of(Columns.unpack(events.pack())) == rows
    assert rows_of(events.slice(start, len(rows) + 5)) == rows[start:]
    assert rows_of(events) == rows


@given(deliveries, st.lists(st.integers(0, 100), max_size=3), st.integers(1, 5))
def test_picking_and_splitting(rows: list[Delivery], cuts: list[int], parts: int) -> None:
    """Each delivery goes to its part, in order; picked ones come in the order asked for."""
    events = in_parts(rows, cuts, True)
    to = [len(key) % parts for _, _, key, _ in rows]
    for number, part in enumerate(events.split(to, parts)):
        assert part is None or len(part) > 0
        chosen = [row for row, other in zip(rows, to, strict=True) if other == number]
        assert ([] if part is None else rows_of(part)) == chosen
    assert rows_of(events.pick(range(len(rows) - 1, -1, -1))) == rows[::-1]
    assert rows_of(events.by_time()) == sorted(rows, key=lambda row: row[1])


@given(deliveries)
def test_by_key(rows: list[Delivery]) -> None:
    """Keys are in order, each with its events in content order."""
    groups = by_key(columns(rows), STREAMS)
    assert groups.keys == sorted({key for _, _, key, _ in rows})
    assert rows_of(groups.events) == sorted(
        rows, key=lambda row: (row[2], row[1], STREAMS[row[0]], canonical(row[3]))
    )
    ends = list(accumulate(groups.counts))
    for key, count, end in zip(groups.keys, groups.counts, ends, strict=True):
        assert set(groups.events.keys[end - count : end]) == {key}
    keys, counts = [], []
    for piece in groups.with_keys({"", "z"}).pieces():
        assert len(piece.events) == sum(piece.counts)
        keys += piece.keys
        counts += piece.counts
    assert keys == sorted({"", "z", *groups.keys}) or not keys
    assert sum(counts) == len(rows)


@given(deliveries)
def test_content_order_leaves_equal_events_in_place(rows: list[Delivery]) -> None:
    """The sort is stable."""
    order = content_order(columns(rows), STREAMS).tolist()
    assert order == sorted(
        range(len(rows)), key=lambda i: (rows[i][1], STREAMS[rows[i][0]], canonical(rows[i][3]))
    )


@given(
    st.lists(st.text(max_size=20), max_size=80),
    st.sampled_from(("", "count", "é")),
    st.integers(1, 300),
)
def test_shards_of_a_column(keys: list[str], function: str, shards: int) -> None:
    """Computed at once, the shards are those that are computed one by one."""
    for column in (keys, [key.encode()[:4].decode(errors="ignore") for key in keys] * 3):
        given = columns([(0, 0, key, b"") for key in column])
        expected = shards_of(function, column, shards)
        assert key_shards(function, given.key_array, shards).tolist() == expected
        part = given.slice(1, len(column))
        assert key_shards(function, part.key_array, shards).tolist() == expected[1:]
