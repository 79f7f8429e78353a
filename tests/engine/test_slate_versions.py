"""Slates of older versions: the engine reads them as the reference does, whatever the batches."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from engine.in_process import InProcess
from hypothesis import given
from hypothesis import strategies as st
from progress_counts import functions

import millstream as ms
from millstream.codec import encode_slate, encode_value, shard_of, slate_codec
from millstream.engine.horizon import Lane
from millstream.reference import Reference, ReferenceSlate
from millstream.slate_versions import migrated_entries, read_slate
from millstream.stores.contract import Fence
from millstream.stores.layout import (
    pack_slate,
    slates_of,
    table_of,
    unpack_slate,
)
from millstream.stores.memory import MemoryStore

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
SHARDS = 3
SET = ms.timer(name="t", after="1us")


@dataclass
class Visits:
    visits: int = ms.field(default=0, formerly="n")
    seen: list[int] = field(default_factory=list)


@dataclass
class Part:
    size: int = 1


@dataclass
class Whole:
    part: Part = field(default_factory=Part)
    count: int = 0
    label: str = "new"


def app_of(kind: type, *, timers: bool = False) -> ms.App:
    """Version 3 of an application; a value of 7 makes an event fail, one of 9 forgets."""
    app = ms.App("versions")
    app.source("s", idle="400d")

    def count(event: Any, slate: Any) -> Any:
        if event.value == 9:
            return [ms.forget()]
        if kind is Visits:
            slate.visits += 1
            slate.seen.append(event.value)
        else:
            slate["visits"] = slate.get("visits", 0) + 1
        if event.value == 7:
            raise ValueError("seven")
        return [SET] if timers and event.value == 5 else None

    handle = app.update("s", slate=kind, name="count", version=3)(count)
    if timers:
        handle.on_timer(lambda timer, slate: None)

    @handle.migrate(1, 2)
    def rename(slate: Any) -> Any:
        if slate.get("n") == 13:
            raise ValueError("thirteen")
        return {"n": slate.get("n", 0) + 100}

    @handle.migrate(2, 3)
    def add(slate: Any) -> None:
        if kind is not Visits:
            slate["visits"] = slate.pop("n")

    return app


def stored_rows(app: ms.App, slates: dict[str, tuple[int, int]]) -> MemoryStore:
    """A store that earlier versions have left: `{n: ...}` of a version, by key."""
    update, store = app.checked().update("count"), MemoryStore(SHARDS)
    for number in range(SHARDS):
        rows: dict[bytes, bytes | None] = {}
        for key, (version, n) in slates.items():
            if shard_of("count", key, SHARDS) != number:
                continue
            table = update.slate is ms.Table
            data = b"" if table else encode_slate({"n": n})
            rows[slates_of("count") + key.encode()] = pack_slate(0, data, {}, version)
            if table:
                rows[table_of("count", key) + b"n"] = encode_value(n)
        store.shard(number).commit(Fence(0, 0, 0), {"count": rows})
    return store


def of_engine(run: InProcess) -> dict[str, Any]:
    assert run.store is not None
    update, found = run.workflow.update("count"), {}
    for number in range(SHARDS):
        with run.store.shard(number).at(run.progress.batch) as view:
            prefix = slates_of("count")
            for row, data in view.scan(prefix, b"T"):
                key, slate = row[len(prefix) :].decode(), unpack_slate(data)
                table = table_of("count", key)
                entries = {
                    e.decode(): v for e, v in view.scan(table, table + b"\xff", cut=len(table))
                }
                found[key] = read(update, slate.version, slate.data, entries)
    return found


def read(update: Any, version: int, data: bytes, entries: dict[str, bytes]) -> Any:
    """A slate as its functions would find it, or what is wrong with it."""
    try:
        if update.slate is not ms.Table:
            return read_slate(update, version, data)
        if version == update.version:
            return entries
        return migrated_entries(update, version, entries)
    except ms.SlateError as error:
        return str(error)


KEYS = st.sampled_from(["a", "b", "c", "d"])


@given(
    kind=st.sampled_from([dict, Visits, ms.Table]),
    timers=st.booleans(),
    lane=st.sampled_from(["one-task", "shuffled"]),
    slates=st.dictionaries(KEYS, st.tuples(st.sampled_from([1, 2]), st.sampled_from([0, 5, 13]))),
    batches=st.lists(
        st.lists(st.tuples(KEYS, st.sampled_from([1, 5, 7, 9])), max_size=5), max_size=4
    ),
)
def test_older_slates_are_those_of_the_reference(
    kind: type, timers: bool, lane: Lane, slates: Any, batches: Any
) -> None:
    """For any stored versions and any order of events, the slates and the dead letters are those of
    the reference. Slates are migrated once, and unchanged where a migration or an event fails."""
    app = app_of(kind, timers=timers)
    workflow = app.checked()
    reference = Reference(workflow)
    for key, (version, n) in slates.items():
        given = ReferenceSlate(0, version=version)
        if kind is ms.Table:
            given.entries = {"n": encode_value(n)}
        else:
            given.data = encode_slate({"n": n})
        reference.slates["count", key] = given
    engine = InProcess(workflow, shards=SHARDS, lane=lane, store=stored_rows(app, slates))
    engine.progress.batch = 0
    engine.progress.functions = functions(slates={"count": len(slates)})
    ts = 0
    for batch in batches:
        events = []
        for key, value in batch:
            ts += 10
            events.append(ms.Event("s", ts, key, value))
        engine.batch(events)
        reference.feed(events)
        reference.drain()
    update = workflow.update("count")
    expected = {
        key: read(update, slate.version, slate.data, slate.entries)
        for (_, key), slate in reference.slates.items()
    }
    assert of_engine(engine) == expected
    letters = sorted((one.ts, one.error) for one in reference.dead_letters)
    assert sorted((one["ts"], one["error"]) for one in engine.letters) == letters


def test_a_slate_that_does_not_fit_is_named_and_not_the_event() -> None:
    """The dead letter says that the slate is wrong, its version, and what to do. The slate is
    unchanged."""
    app = ms.App("fits")
    app.source("s")
    app.update("s", slate=Visits, name="count")(lambda event, slate: None)
    run = ms.testing.run(app).give_slate("count", "k", {"visits": "many"})
    (letter,) = run.feed([("s", 1, "k", None)]).dead_letters
    assert letter.error.startswith("SlateError: the slate of update 'count', stored with version 1")
    assert "Expected `int`, got `str` - at `$.visits`" in letter.error
    assert "the event is not to blame" in letter.error


def test_a_row_has_its_version_only_if_it_is_not_the_first() -> None:
    """Rows of version 1 are what they always were; others are of a format that is refused by
    Millstreams which do not know it."""
    assert pack_slate(5, b"{}", {}) == b"\x10" + (5).to_bytes(8) + b"{}"
    row = pack_slate(5, b"{}" * 2_000, {"t": ("event", 9)}, 300)
    assert unpack_slate(row) == (5, b"{}" * 2_000, {"t": ("event", 9)}, 300)
    assert row[0] & 0xF0 == 0x20


def test_a_new_field_is_stored_when_an_old_slate_is_written_again() -> None:
    """Fields of nested dataclasses too; they then no longer follow a default that changes."""
    codec = slate_codec(Whole)
    assert codec.encode(codec.decode(b'{"part":{}}')) == (
        b'{"part":{"size":1},"count":0,"label":"new"}'
    )
    assert codec.encode(slate_codec(Visits).decode(b'{"n":4}')) == b'{"visits":4,"seen":[]}'


@given(st.sets(st.one_of(st.text(max_size=3), st.integers()), max_size=8))
def test_a_set_is_stored_in_one_order(items: set[Any]) -> None:
    """However a set was built, a slate with it is stored as the same bytes."""

    @dataclass
    class Seen:
        items: set[Any] = field(default_factory=set)

    backwards = set[Any]()
    for item in reversed([*items]):
        backwards.add(item)
    for slate in (Seen(items), {"items": items}, {"in": [{"items": items}]}):
        other = Seen(backwards) if isinstance(slate, Seen) else {"items": backwards}
        if isinstance(slate, dict) and "in" in slate:
            other = {"in": [{"items": backwards}]}
        codec = slate_codec(type(slate))
        assert codec.encode(slate) == codec.encode(other)
    assert slate_codec(Seen).encode(Seen({"b", "a", 10, 9})) == b'{"items":[9,10,"a","b"]}'


@pytest.mark.parametrize(
    ("build", "wrong"),
    [
        (lambda app: app.update("s", version=0), "version must be from 1"),
        (lambda app: app.update("s", migrations={(1, 1): dict}), "must lead to another version"),
        (lambda app: app.update("s", migrations={(1, 2): lambda: 1}), "must take (slate)"),
    ],
)
def test_wrong_versions_are_refused(build: Any, wrong: str) -> None:
    """Where they are declared."""
    app = ms.App("wrong")
    app.source("s")
    with pytest.raises(ms.DefinitionError) as refused:
        build(app)(_count)
    assert wrong in str(refused.value)


def _count(event: Any, slate: Any) -> None:
    pass
