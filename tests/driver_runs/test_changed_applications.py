"""An application is changed and restarted: which changes are kept, refused, or migrate slates."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import millstream as ms
from millstream.cli.commands.plan import planned
from millstream.driver.in_process import run
from millstream.driver.maintenance.resharding import reshard
from millstream.driver.maintenance.slate_migration import migrate
from millstream.driver.report import RunSummary
from millstream.errors import StoreError
from millstream.settings.settings import Settings
from millstream.stores.home import Home, held
from millstream.stores.reader import SlateReader
from millstream.verifying.store import verify


@dataclass
class Count:
    n: int = 0


@dataclass
class Visits:
    visits: int = 0
    label: str = "new"


@dataclass
class Renamed:
    visits: int = ms.field(default=0, formerly="n")


def shop(order: Any = "arrival") -> ms.App:
    app = ms.App("shop", order=order)
    app.source("buys", key="user", ts="ts", unit="us")
    return app


def first(slate: type = Count, name: str = "count", **options: Any) -> ms.App:
    app = shop(options.pop("order", "arrival"))

    @app.update("buys", slate=slate, name=name, **options)
    def count(event: Any, slate: Any) -> None:
        if isinstance(slate, Count):
            slate.n += 1
        elif isinstance(slate, dict | ms.Table):
            slate["n"] = slate.get("n", 0) + 1
        else:
            slate.visits += 1

    return app


def store(tmp_path: Path, kind: str = "local") -> dict[str, Any]:
    if kind == "local":
        return {"store": tmp_path / "store"}
    return {
        "store": tmp_path / "work",
        "place": f"shared:{tmp_path / 'place'}",
        "cache": str(tmp_path / "cache"),
    }


def given(tmp_path: Path, kind: str = "local", **more: Any) -> Settings:
    folder = tmp_path / "in"
    folder.mkdir(exist_ok=True)
    where = store(tmp_path, kind)
    options = {"available_now": True, "shards": 3, "check_store": False, **more}
    return Settings.of("shop", where.pop("store"), {"buys": f"json:{folder}"}, **where, **options)


def go(tmp_path: Path, app: ms.App, kind: str = "local", **more: Any) -> RunSummary:
    """Two more buys of ann and one of bob, and a run over them."""
    folder = tmp_path / "in"
    folder.mkdir(exist_ok=True)
    number = len(list(folder.iterdir()))
    users = ["ann", "bob", "ann"]
    records = [{"user": user, "ts": 10 * number + n} for n, user in enumerate(users)]
    (folder / f"{number}.json").write_text("".join(json.dumps(one) + "\n" for one in records))
    return run(app, given(tmp_path, kind, **more))


def slates(tmp_path: Path, update: str, kind: str = "local") -> dict[str, Any]:
    if kind == "local":
        with SlateReader(tmp_path / "store") as reader:
            return {slate.key: slate.value for slate in reader.scan(update)}
    from millstream.cli.store import mirrored

    with mirrored(f"shared:{tmp_path / 'place'}") as folder, SlateReader(folder) as reader:
        return {slate.key: slate.value for slate in reader.scan(update)}


def states(tmp_path: Path, app: ms.App, **options: Any) -> dict[tuple[str, str], bool]:
    """Returns the findings of the plan: whether each is a loss, by name and state."""
    found = planned(app.checked(), tmp_path / "store", options.get("sample"))
    return {(one.name, one.state): one.loss for one in found.consequences}


def test_another_algebra_cannot_go_on_from_the_slates(tmp_path: Path) -> None:
    """A store remembers the algebra with its arguments, and refuses another under the same name."""

    def summing(algebra: Any) -> ms.App:
        app = shop()
        app.aggregate("buys", algebra=algebra, name="sums")
        return app

    go(tmp_path, summing(ms.algebra.sum("ts")))
    go(tmp_path, summing(ms.algebra.sum("ts")))
    for other in (ms.algebra.sum("price"), ms.algebra.mean("ts")):
        with pytest.raises(StoreError, match="stored as aggregate:sum of=ts, and the application"):
            go(tmp_path, summing(other))


@pytest.mark.parametrize("kind", ["local", "shared"])
def test_an_update_is_renamed(tmp_path: Path, kind: str) -> None:
    """With formerly= its slates, waiting events and counts go on under the new name; without it a
    start is refused, and nothing is changed. Another update may have the old name later."""
    go(tmp_path, first(), kind)
    with pytest.raises(StoreError, match=r"'count': is gone.*formerly=\"count\".*--accept-loss"):
        go(tmp_path, first(name="visits"), kind)
    renamed = first(name="visits", formerly="count")
    summary = go(tmp_path, renamed, kind)
    assert summary.dead_letters == 0
    assert slates(tmp_path, "visits", kind) == {"ann": {"n": 6}, "bob": {"n": 3}}
    both = first(name="visits")
    both.update("buys", name="count")(lambda event, slate: slate.__setitem__("new", True))
    go(tmp_path, both, kind)
    assert slates(tmp_path, "visits", kind)["ann"] == {"n": 8}
    assert slates(tmp_path, "count", kind) == {"ann": {"new": True}, "bob": {"new": True}}
    if kind == "local":
        assert Home.open(tmp_path / "store").facts.stored_as == {
            "visits": "count",
            "count": "count~2",
        }
        assert verify(tmp_path / "store").faults == []
        with held(tmp_path / "store"):
            reshard(Home.open(tmp_path / "store"), 5, lambda text: None)
        go(tmp_path, both, shards=None)
        assert slates(tmp_path, "visits")["ann"] == {"n": 10}
        assert verify(tmp_path / "store").faults == []


def test_events_that_wait_follow_a_rename(tmp_path: Path) -> None:
    """Waiting events are processed by the update under its new name."""
    go(tmp_path, first(order="event-time"))
    go(tmp_path, first(name="visits", formerly="count", order="event-time"), final=True)
    assert slates(tmp_path, "visits") == {"ann": {"n": 4}, "bob": {"n": 2}}


def test_an_update_is_removed_and_brought_back(tmp_path: Path) -> None:
    """Said to be retired, or accepted once, its slates stay and can be read; brought back, it goes
    on with them."""
    go(tmp_path, first())
    other = shop()
    other.update("buys", name="other")(lambda event, slate: None)
    assert states(tmp_path, other)["count", "orphaned"]
    with pytest.raises(StoreError, match=r"app.retire"):
        go(tmp_path, other)
    other.retire("count")
    go(tmp_path, other)
    assert slates(tmp_path, "count")["ann"] == {"n": 2}
    assert not any(states(tmp_path, other).values())
    both = first()
    both.update("buys", name="other")(lambda event, slate: None)
    go(tmp_path, both)
    assert slates(tmp_path, "count")["ann"] == {"n": 4}


def test_a_loss_that_was_accepted_is_not_asked_again(tmp_path: Path) -> None:
    """A loss is accepted by name, or with 'all'. The run says what is lost."""
    go(tmp_path, first())
    said: list[str] = []
    other = first(name="visits")
    with pytest.raises(StoreError):
        go(tmp_path, other, accept_loss=("visits",))
    run(other, given(tmp_path, accept_loss=("count",)), say=said.append)
    assert "accepted: update 'count'" in said[0]
    go(tmp_path, other)


def test_an_update_is_put_between_two(tmp_path: Path) -> None:
    """The one behind it reads another stream from then on, and keeps its slates."""
    go(tmp_path, first())
    app = shop()
    app.update("buys", name="between", publishes="known")(lambda event, slate: [ms.emit("known")])

    @app.update("known", slate=Count)
    def count(event: Any, slate: Any) -> None:
        slate.n += 1

    assert states(tmp_path, app) == {
        ("between", "new"): False,
        ("count", "kept"): False,
        ("count", "fit"): False,
        ("buys", "kept"): False,
        ("known", "new"): False,
    }
    go(tmp_path, app)
    assert slates(tmp_path, "count")["ann"] == {"n": 4}


def test_a_field_that_is_gone_is_a_loss_unless_it_was_renamed(tmp_path: Path) -> None:
    """Its values would be dropped when the slate is next written."""
    go(tmp_path, first())
    with pytest.raises(StoreError, match=r"field 'n' is gone.*formerly=\"n\""):
        go(tmp_path, first(Visits))
    go(tmp_path, first(Renamed))
    assert slates(tmp_path, "count") == {"ann": {"visits": 6}, "bob": {"visits": 3}}


def test_slates_that_do_not_fit_are_found_before_a_start(tmp_path: Path) -> None:
    """A field of another type, or a version without a migration, is refused by name."""

    @dataclass
    class Text:
        n: str = ""

    go(tmp_path, first())
    assert states(tmp_path, first(Text))["count", "unfit"]
    with pytest.raises(
        StoreError, match=r"cannot be read as Text, such as that of key '(ann|bob)'"
    ):
        go(tmp_path, first(Text))
    with pytest.raises(StoreError, match=r"no migration leads from it to version 2"):
        go(tmp_path, first(Visits, version=2))
    with pytest.raises(
        StoreError, match=r"stored as dataclass, and the application now says table"
    ):
        go(tmp_path, first(ms.Table))


@pytest.mark.parametrize("kind", ["local", "shared"])
def test_slates_migrate_when_they_are_used_and_in_bulk(tmp_path: Path, kind: str) -> None:
    """A slate migrates when an event reaches it, or with all others by `migrate`. After that the
    migration is not needed any more. A second `migrate` has nothing to do."""
    go(tmp_path, first(), kind)
    app = first(Visits, version=2, migrations={(1, 2): lambda slate: {"visits": slate["n"]}})
    done = migrate(app, given(tmp_path, kind), lambda text: None)
    assert (done.changed, done.unfit) == ({"count": 2}, {})
    assert slates(tmp_path, "count", kind)["ann"] == {"visits": 2, "label": "new"}
    assert migrate(app, given(tmp_path, kind), lambda text: None).changed == {}
    go(tmp_path, first(Visits, version=2), kind)
    assert slates(tmp_path, "count", kind)["bob"] == {"visits": 2, "label": "new"}
    if kind == "local":
        assert verify(tmp_path / "store").faults == []


@pytest.mark.parametrize("kind", ["local", "shared"])
def test_a_migration_in_bulk_needs_no_sources(tmp_path: Path, kind: str) -> None:
    """An application that runs with `--source buys=json:in` can be migrated without that option,
    and runs with it afterwards."""
    go(tmp_path, first(), kind)
    app = first(Visits, version=2, migrations={(1, 2): lambda slate: {"visits": slate["n"]}})
    elsewhere = given(tmp_path, kind).changed(sources={"buys": "log:"})
    assert migrate(app, elsewhere, lambda text: None).changed == {"count": 2}
    go(tmp_path, app, kind)
    assert slates(tmp_path, "count", kind)["ann"] == {"visits": 4, "label": "new"}


def test_tables_and_ranked_slates_migrate_in_bulk(tmp_path: Path) -> None:
    """Entries of tables too; the order of slates whose number is limited is made anew."""
    go(tmp_path, first(ms.Table, keep=50))
    steps = {(1, 2): lambda slate: {"visits": slate["n"] + 100}}
    app = first(ms.Table, version=2, migrations=steps, keep=50)
    assert migrate(app, given(tmp_path), lambda text: None).changed == {"count": 2}
    assert slates(tmp_path, "count") == {"ann": {"visits": 102}, "bob": {"visits": 101}}
    assert verify(tmp_path / "store").faults == []


def test_what_cannot_be_migrated_is_left_and_counted(tmp_path: Path) -> None:
    """A migration that fails for a slate leaves that one as it is."""

    def step(slate: dict[str, Any]) -> dict[str, Any]:
        return {"visits": 10 // (slate["n"] - 1)}

    go(tmp_path, first())
    app = first(Visits, version=2, migrations={(1, 2): step})
    done = migrate(app, given(tmp_path, accept_loss=("all",)), lambda text: None)
    assert (done.changed, done.unfit) == ({"count": 1}, {"count": 1})
    assert "ZeroDivisionError" in done.error
    assert slates(tmp_path, "count") == {"ann": {"visits": 10, "label": "new"}, "bob": {"n": 1}}


def test_a_dict_becomes_a_dataclass(tmp_path: Path) -> None:
    """Both are stored as JSON: what is in them decides."""
    go(tmp_path, first(dict))
    go(tmp_path, first(Count))
    assert slates(tmp_path, "count")["ann"] == {"n": 4}
    go(tmp_path, first(dict))
    assert slates(tmp_path, "count")["ann"] == {"n": 6}


def test_records_of_a_source_that_is_gone_are_a_loss(tmp_path: Path) -> None:
    """If they were accepted into its log, and not taken in."""
    from millstream.log.writer import Entry, LogWriter
    from millstream.stores.home import log_of

    settings = Settings.of(
        "shop", tmp_path / "store", {"buys": "log"}, available_now=True, shards=1
    )
    writer = LogWriter(log_of(tmp_path / "store", "buys"))
    writer.append([Entry.of([b'{"user": "ann", "ts": 1}'])])
    run(first(), settings)
    writer.append([Entry.of([b'{"user": "ann", "ts": 2}', b'{"user": "ann", "ts": 3}'])])
    writer.close()
    other = ms.App("shop")
    other.source("more")
    other.update("more", name="count", slate=Count)(lambda event, slate: None)
    found = planned(other.checked(), tmp_path / "store", None)
    (lost,) = found.losses()
    assert (lost.name, lost.state) == ("buys", "gone")
    assert "2 records that were accepted are not taken in" in lost.text


@pytest.mark.parametrize("kind", ["local", "shared"])
def test_the_last_output_was_of_a_stream_that_is_gone(tmp_path: Path, kind: str) -> None:
    """The last batch has output of one stream only, and it is published. The application is started
    again without that stream: its log still tells that nothing is missing."""

    def passing(stream: str) -> ms.App:
        app = first()
        app.map("buys", name="passed", publishes=stream)(lambda event: [ms.emit(key=event.key)])
        app.output(stream)
        return app

    go(tmp_path, passing("old"), kind)
    assert go(tmp_path, passing("new"), kind).dead_letters == 0
    assert slates(tmp_path, "count", kind)["ann"] == {"n": 4}
