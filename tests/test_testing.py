"""`millstream.testing`: what a user's tests can feed, move and read."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import millstream as ms


@dataclass
class Count:
    count: int = 0


def shop() -> ms.App:
    app = ms.App("shop")
    app.source("orders", key="user", ts="time", unit="s")
    app.source("visits")
    app.output("big")

    @app.map("orders", publishes="big")
    def split(event: ms.Event) -> Any:
        if event.value["price"] > 100:
            yield ms.emit()

    @app.update("orders", slate=Count)
    def count(event: ms.Event, slate: Count) -> None:
        slate.count += 1

    @app.update("visits")
    def visits(event: ms.Event, slate: dict[str, Any]) -> None:
        slate["last"] = [event.ts, event.value]

    @app.update("orders", slate=ms.Table)
    def prices(event: ms.Event, slate: ms.Table) -> None:
        slate[f"{event.value['price']:05d}"] = event.ts

    return app


ORDERS = [
    {"user": "ann", "time": 2, "price": 500},
    {"user": "bob", "time": 1, "price": 5},
    {"user": "ann", "time": 3, "price": 7},
]


def test_records_by_source_become_events() -> None:
    """Given records by source, each source's own key and ts make the events."""
    run = ms.testing.run(shop(), {"orders": ORDERS})
    assert run.slates("count") == {"ann": Count(2), "bob": Count(1)}
    assert run.stream("big") == [ms.Event("big", 2_000_001, "ann", ORDERS[0])]


def test_events_and_plain_tuples_are_given_as_they_are() -> None:
    """Events name their stream, time and key themselves."""
    price = {"price": 1}
    run = ms.testing.run(shop(), [ms.Event("orders", 1, "x", price), ("orders", 2, "x", price)])
    assert run.slate("count", "x") == Count(2)


def test_any_iterable_will_do() -> None:
    """Events and records may come from generators."""
    run = ms.testing.run(shop(), (("visits", ts, "", ts) for ts in (1, 2)))
    run.feed({"orders": iter(ORDERS)})
    assert run.slate("visits", "") == {"last": [2, 2]}
    assert run.slate("count", "ann") == Count(2)


def test_records_without_a_time_take_the_clock() -> None:
    """The clock that the test holds is the time of records that bring none."""
    run = ms.testing.run(shop(), {"visits": ["home"]}, clock=datetime(1970, 1, 2, tzinfo=UTC))
    assert run.slate("visits", "") == {"last": [86_400_000_000, "home"]}
    run.tick(by=timedelta(seconds=1)).feed({"visits": ["cart"]})
    assert run.slate("visits", "") == {"last": [86_401_000_000, "cart"]}


def test_a_record_that_cannot_be_read_is_told() -> None:
    """In a test a bad record is an error at once."""
    with pytest.raises(ms.InputError, match="source 'orders': key: the record has no field 'user'"):
        ms.testing.run(shop(), {"orders": [{"time": 1}]})


def test_feeding_goes_on_where_it_was() -> None:
    """A run can be fed again and again; slates and streams go on."""
    run = ms.testing.run(shop())
    assert run.slates("count") == {}
    for order in ORDERS:
        assert run.feed({"orders": [order]}) is run
    assert run.slates("count") == ms.testing.run(shop(), {"orders": ORDERS}).slates("count")


def test_runs_are_apart() -> None:
    """Two runs of one application share nothing."""
    app = shop()
    one, other = ms.testing.run(app, {"orders": ORDERS}), ms.testing.run(app)
    assert one.slates("count")
    assert other.slates("count") == {}


def test_reading_slates() -> None:
    """A slate is read as a dict, its dataclass, or a table's entries; a missing one as None."""
    run = ms.testing.run(shop(), {"orders": ORDERS}).feed({"visits": [1]})
    assert run.slate("count", "ann") == Count(2)
    assert run.slate("visits", "") == {"last": [0, 1]}
    assert list(run.slate("prices", "ann").items()) == [("00007", 3_000_000), ("00500", 2_000_000)]
    assert run.slate("count", "nobody") is None
    assert list(run.slates("count")) == ["ann", "bob"], "in key order"


def test_what_is_read_is_a_copy() -> None:
    """Changing what was read does not change the run."""
    run = ms.testing.run(shop(), {"orders": ORDERS})
    run.slate("count", "ann").count = 99
    run.dead_letters.append("x")  # type: ignore[arg-type]
    assert run.slate("count", "ann") == Count(2)
    assert run.dead_letters == []


def test_streams_are_read_in_content_order() -> None:
    """A stream's events come by time, then value, whatever order they were fed in."""
    run = ms.testing.run(
        shop(), [("visits", 2, "", 1), ("visits", 1, "b", 9), ("visits", 1, "a", 8)]
    )
    assert run.stream("visits") == [
        ms.Event("visits", 1, "a", 8),
        ms.Event("visits", 1, "b", 9),
        ms.Event("visits", 2, "", 1),
    ]


def test_wrong_names_are_told() -> None:
    """An unknown stream, source or update is an error that lists the existing ones."""
    run = ms.testing.run(shop())
    with pytest.raises(ms.DefinitionError, match="has no stream 'bigg'; did you mean 'big'"):
        run.stream("bigg")
    with pytest.raises(ms.DefinitionError, match="unknown update 'coun'; there are: count"):
        run.slate("coun", "ann")
    with pytest.raises(ms.DefinitionError, match="unknown update 'split'"):
        run.slates("split")
    for given in ([("big", 1, "", 0)], {"big": [1]}):
        with pytest.raises(ms.DefinitionError, match="not a source of app 'shop'; there are: orde"):
            run.feed(given)


def test_the_clock_is_held_by_the_test() -> None:
    """It starts at the given time, moves only by tick, and never goes back."""
    run = ms.testing.run(shop(), clock=5)
    run.feed([("visits", 10**12, "", 0)])
    assert run.clock == 5
    assert run.tick(10).clock == 10
    assert run.tick(7).clock == 10
    assert run.tick(by="1ms").clock == 1_010
    assert run.tick(datetime(1970, 1, 1, 0, 0, 1)).clock == 1_000_000
    with pytest.raises(TypeError, match=r"tick\(\) takes an instant, or by= a duration"):
        run.tick()


def test_a_wrong_app_is_told_before_it_runs() -> None:
    """Running an application checks it first."""
    app = ms.App("shop")
    with pytest.raises(ms.DefinitionError, match="app 'shop' has no source"):
        ms.testing.run(app)


def test_dead_letters_are_read() -> None:
    """A failed event is there with its input and its error."""
    run = ms.testing.run(shop(), [("orders", 1, "ann", {"cost": 1})])
    assert {letter.function for letter in run.dead_letters} == {"split", "prices"}
    for letter in run.dead_letters:
        assert re.fullmatch(r"KeyError: 'price' \(.*test_testing\.py:\d+ in .*\)", letter.error)
    assert run.slate("count", "ann") == Count(1)
