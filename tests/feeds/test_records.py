"""The valid records of feeds. All others get an error that says what is expected."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import msgspec
import pytest

import millstream as ms
from millstream.feeds.placement import PlacedFeeds
from millstream.feeds.records import KINDS, convert_record, read_record

AT = 1_700_000_000_000_000
GOOD: dict[str, dict[str, Any]] = {
    **{
        kind: {"kind": kind, "at": AT, "consumer": "x", "producer": "ann"}
        for kind in ("follow", "unfollow", "block", "unblock")
    },
    "post": {"kind": "post", "at": AT, "producer": "ann", "id": "1", "value": None, "ratio": 2},
    "edit": {"kind": "edit", "at": AT, "producer": "ann", "id": "1", "value": {"text": "so"}},
    "delete": {"kind": "delete", "at": AT, "producer": "ann", "id": "1"},
    "view": {"kind": "view", "at": AT, "consumer": "x", "count": 3, "flow": 0, "ratio": 0.5},
    "seen": {"kind": "seen", "at": AT, "consumer": "x", "upto": [AT, "ann", "1"]},
    "aggregate": {"kind": "aggregate", "at": AT, "producer": "news", "sources": ["ann", "bob"]},
}


def test_every_kind_is_taken_in() -> None:
    """Checked, and by the functions behind."""
    assert {*GOOD} == {*KINDS}
    app = ms.App("social")
    app.add(ms.feeds.Feeds(), name="feeds")
    run = ms.testing.run(app, {"feeds.events": [*GOOD.values()]})
    assert not run.dead_letters


@pytest.mark.parametrize(
    ("kind", "wrong", "told"),
    [
        ("post", {"kind": "pots"}, "did you mean 'post'"),
        ("post", {"producer": ""}, "producer must be text of 1 to 200 characters"),
        ("post", {"id": "a\x1fb"}, "id must have no control characters"),
        ("post", {"id": "a\n"}, "id must have no control characters"),
        ("post", {"id": "\U0010ffff"}, "id must have no control characters"),
        ("post", {"at": 1.5}, "at must be a time in whole microseconds"),
        ("post", {"at": True}, "at must be a time"),
        ("post", {"ratio": "abc"}, "ratio must be a number over 0"),
        ("view", {"ratio": 0}, "ratio must be a number over 0"),
        ("view", {"count": -1}, "count must be a number over 0"),
        ("view", {"flow": "much"}, "flow must be a number from 0"),
        ("view", {"flow": float("nan")}, "flow must be a number from 0"),
        ("seen", {"upto": [AT, "ann"]}, "upto must be"),
        ("aggregate", {"sources": "ann"}, "sources must be a list"),
        ("aggregate", {"sources": ["news"]}, "must not be a source of itself"),
        ("follow", {"producer": "p" * 201}, "producer must be text of 1 to 200"),
    ],
)
def test_a_wrong_record_is_refused(kind: str, wrong: dict[str, Any], told: str) -> None:
    """The error says what is expected and what was given."""
    with pytest.raises(ms.InputError, match=told):
        read_record({**GOOD[kind], **wrong})


@pytest.mark.parametrize("name", ["👩\u200d🚀", "no\u00a0break", "\u2028", "'\"\\/", " ", "名前"])
def test_all_other_characters_are_good_for_names(name: str) -> None:
    """Joined emoji and unusual spaces, too."""
    read_record(GOOD["post"] | {"id": name, "producer": name})


@pytest.mark.parametrize(
    ("kind", "field"),
    [("view", "count"), ("view", "flow"), ("view", "ratio"), ("post", "ratio"), ("post", "at")],
)
@pytest.mark.parametrize(
    "value",
    [
        *(0, -1, 1, 10**17 - 1, 10**17, 10**400),
        *(0.5, 1e308, 1.75e308, float("inf"), float("nan")),
        *(None, True, "1", [1]),
    ],
    ids=lambda value: repr(value)[:9],
)
def test_the_check_and_the_types_agree(kind: str, field: str, value: Any) -> None:
    """A value is accepted just when the type says so, which the OpenAPI document is made of."""
    record = GOOD[kind] | {field: value}

    def accepted(check: Callable[[dict[str, Any]], Any], error: type[Exception]) -> bool:
        try:
            check(record)
        except error:
            return False
        return True

    assert accepted(read_record, ms.InputError) == accepted(convert_record, msgspec.ValidationError)


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_kind_needs(kind: str) -> None:
    """Without any one of its fields it is refused, by name."""
    for field in {"consumer", "producer", "id", "value", "upto", "sources"} & {*GOOD[kind]}:
        record = {name: value for name, value in GOOD[kind].items() if name != field}
        with pytest.raises(ms.InputError, match=f"must have '{field}'"):
            read_record(record)


def test_options_are_described_so_that_they_can_be_given_again() -> None:
    """The server makes the same options of the description, durations too."""
    options = ms.feeds.Feeds(t=timedelta(days=7), memory="2h")
    placed = PlacedFeeds(options, "feeds")
    again = PlacedFeeds.read("feeds", placed.described()).options
    assert (again.t_us, again.memory_us) == (options.t_us, options.memory_us)
