"""Fields of dataclasses within a slate: one that is removed is a loss, like one of the slate."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import millstream as ms
from millstream.cli.commands.plan import planned
from millstream.driver.in_process import run
from millstream.driver.startup.consequence import Consequence
from millstream.errors import StoreError
from millstream.settings.settings import Settings
from millstream.stores.home import Home, held
from millstream.stores.reader import SlateReader


@dataclass
class Place:
    town: str = ""
    zip: str = ""


@dataclass
class Town:
    town: str = ""


@dataclass
class Stay:
    places: list[Place] = field(default_factory=list)


@dataclass
class ShortStay:
    places: list[Town] = field(default_factory=list)


@dataclass
class Branch:
    zip: str = ""
    below: Branch | None = None


@dataclass
class BareBranch:
    below: BareBranch | None = None


def bern() -> Place:
    return Place("Bern", "3000")


@dataclass
class One:
    home: Place = field(default_factory=bern)


@dataclass
class OneLess:
    home: Town = field(default_factory=Town)


@dataclass
class Maybe:
    home: Place | None = field(default_factory=bern)


@dataclass
class MaybeLess:
    home: Town | None = None


@dataclass
class Many:
    homes: list[Place] = field(default_factory=lambda: [bern()])


@dataclass
class ManyLess:
    homes: list[Town] = field(default_factory=list)


@dataclass
class Named:
    homes: dict[str, Place] = field(default_factory=lambda: {"first": bern(), "second": bern()})


@dataclass
class NamedLess:
    homes: dict[str, Town] = field(default_factory=dict)


@dataclass
class Numbered:
    homes: dict[int, Place] = field(default_factory=lambda: {1: bern(), 2: bern()})


@dataclass
class NumberedLess:
    homes: dict[int, Town] = field(default_factory=dict)


@dataclass
class Deep:
    stays: dict[str, Stay] = field(default_factory=lambda: {"may": Stay([bern()])})


@dataclass
class DeepLess:
    stays: dict[str, ShortStay] = field(default_factory=dict)


@dataclass
class Tree:
    top: Branch = field(default_factory=lambda: Branch("1", Branch("2")))


@dataclass
class TreeLess:
    top: BareBranch = field(default_factory=BareBranch)


@dataclass
class Renamed:
    house: Town = ms.field(default_factory=Town, formerly="home")  # noqa: RUF009


@dataclass
class More:
    home: Place = field(default_factory=bern)
    visits: int = 0


@dataclass
class MoreLess:
    home: Town = field(default_factory=Town)
    visits: int = 0


def app(slate: type, **options: Any) -> ms.App:
    app = ms.App("stays")
    app.source("stays", key="user")

    @app.update("stays", slate=slate, **options)
    def last(event: Any, slate: Any) -> None:
        if isinstance(slate, dict):
            slate["home"] = {"town": "Bern", "zip": "3000"}

    return app


def go(tmp_path: Path, slate: type, users: str = "ab", **options: Any) -> None:
    folder = tmp_path / "in"
    folder.mkdir(exist_ok=True)
    lines = "".join(json.dumps({"user": user}) + "\n" for user in users)
    (folder / f"{len([*folder.iterdir()])}.json").write_text(lines)
    settings = Settings.of(
        "stays",
        tmp_path / "store",
        {"stays": f"json:{folder}"},
        available_now=True,
        shards=1,
        check_store=False,
        accept_loss=options.pop("accept_loss", ()),
    )
    run(app(slate, **options), settings)


def losses(tmp_path: Path, slate: type, **options: Any) -> list[Consequence]:
    return planned(app(slate, **options).checked(), tmp_path / "store", None).losses()


@pytest.mark.parametrize(
    ("before", "after", "path"),
    [
        (One, OneLess, "home.zip"),
        (Maybe, MaybeLess, "home.zip"),
        (Many, ManyLess, "homes[].zip"),
        (Named, NamedLess, "homes[].zip"),
        (Numbered, NumberedLess, "homes.*.zip"),
        (Deep, DeepLess, "stays[].places[].zip"),
        (Tree, TreeLess, "top.zip"),
        (dict, OneLess, "home.zip"),
        (One, Renamed, "house.zip"),
    ],
)
def test_a_field_that_is_gone_from_a_nested_dataclass_is_a_loss(
    tmp_path: Path, before: type, after: type, path: str
) -> None:
    """The plan names it by its path, and a start refuses it and changes nothing."""
    go(tmp_path, before)
    (loss, *more) = losses(tmp_path, after)
    assert f"field {path!r}" in loss.text
    assert all(".zip" in other.text for other in more)  # a tree has it at each depth
    with pytest.raises(StoreError, match=r"zip'.* is gone.*raise version= and add a migration"):
        go(tmp_path, after)
    with SlateReader(tmp_path / "store") as reader:
        assert "3000" in str(stored := reader.get("last", "a")) or "'zip': '2'" in str(stored)
    assert losses(tmp_path, before) == []


def test_a_nested_field_more_is_no_loss(tmp_path: Path) -> None:
    """It has its default."""
    go(tmp_path, OneLess)
    assert losses(tmp_path, One) == []
    go(tmp_path, One)


@pytest.mark.parametrize(("before", "after"), [(One, OneLess), (Numbered, NumberedLess)])
def test_a_nested_loss_that_was_accepted_is_not_asked_again(
    tmp_path: Path, before: type, after: type
) -> None:
    """Although slates that were not written since still have the values."""
    go(tmp_path, before)
    go(tmp_path, after, "a", accept_loss=("last",))
    assert losses(tmp_path, after) == []
    go(tmp_path, after, "a")


def test_after_an_accepted_loss_another_change_does_not_ask_for_it(tmp_path: Path) -> None:
    """Only what the last run still declared can be lost anew."""
    go(tmp_path, One)
    go(tmp_path, OneLess, "a", accept_loss=("last",))
    assert losses(tmp_path, MoreLess) == []


def test_a_migration_may_leave_a_nested_field_out(tmp_path: Path) -> None:
    """With a raised version it is the migration that says what becomes of it."""
    go(tmp_path, One)

    def without_zip(slate: dict[str, Any]) -> None:
        del slate["home"]["zip"]

    options = {"version": 2, "migrations": {(1, 2): without_zip}}
    assert losses(tmp_path, OneLess, **options) == []


def test_a_store_that_does_not_know_the_nested_fields_is_read(tmp_path: Path) -> None:
    """Earlier versions stored the name of a nested type only: the slates show what would go."""
    go(tmp_path, One)
    with held(tmp_path / "store"):
        home = Home.open(tmp_path / "store")
        home.facts.slates["last"].columns = None
        home.write_facts()
    (loss,) = losses(tmp_path, OneLess)
    assert "field 'home.zip', which 2 of the slates that were read have, is gone" in loss.text
