"""A start over a damaged store: slates are never fewer afterwards than before.

Each file is deleted, emptied, flipped and replaced by an older one, singly and in pairs. Either
the start goes on and all slates are there, with all that the sources had; or it is refused, and
once the files are put back everything is as it was.
"""

from __future__ import annotations

import shutil
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from damaged_stores import BATCHES, DAMAGES, Made, damaged_ways, made, slates

from millstream.errors import MillstreamError

Ways = tuple[tuple[str, str], ...]


@pytest.fixture(scope="module", params=[False, True], ids=["flushed", "layered"])
def stores(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Made:
    return made(tmp_path_factory.mktemp("stores"), layered=request.param)


def damaged(stores: Made, store: Path, ways: Ways) -> bool:
    """A fresh copy of the store, damaged; False if it cannot be damaged so."""
    shutil.rmtree(store, ignore_errors=True)
    shutil.copytree(stores.after(BATCHES), store)
    return all(DAMAGES[damage](stores, store, name) for name, damage in ways)


def put_back(stores: Made, store: Path, ways: Ways) -> None:
    for name, _ in ways:
        (store / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(stores.after(BATCHES) / name, store / name)


def outcome(
    stores: Made, store: Path, ways: Ways, expected: dict[str, Any], *, check: bool
) -> str | None:
    """Returns the fault of a start over a store with this damage. None: the start is right."""
    try:
        stores.start(store, check=check)
    except MillstreamError:
        put_back(stores, store, ways)
        stores.start(store, check=False)
        return None if slates(store) == expected else "slates are gone after a refused start"
    found = slates(store)
    return None if found == expected else f"{len(found)} of {len(expected)} slates, or wrong ones"


def test_one_damaged_file_never_costs_a_slate(stores: Made, tmp_path: Path) -> None:
    """Every file, every damage, with the check of all rows that a start makes."""
    expected, wrong, tried = slates(stores.after(BATCHES)), [], 0
    for way in damaged_ways(stores.files()):
        if damaged(stores, tmp_path / "store", (way,)):
            tried += 1
            said = outcome(stores, tmp_path / "store", (way,), expected, check=True)
            wrong += [f"{way}: {said}"] if said else []
    assert not wrong, "\n".join(wrong)
    assert tried > 30


QUICK = ("deleted", "one batch older")
SLOW = ("deleted", "emptied", "one batch older", "two batches older")


@pytest.mark.parametrize(
    "damages", [QUICK, pytest.param(SLOW, marks=pytest.mark.faults)], ids=["some", "all"]
)
def test_two_damaged_files_never_cost_a_slate(
    stores: Made, tmp_path: Path, damages: tuple[str, ...]
) -> None:
    """Every pair of kinds of files, each damaged in every way; without the check of all rows."""
    expected, wrong, tried = slates(stores.after(BATCHES)), [], 0
    for pair in combinations(damaged_ways(stores.kinds(), damages), 2):
        if pair[0][0] == pair[1][0] or not damaged(stores, tmp_path / "store", pair):
            continue
        tried += 1
        said = outcome(stores, tmp_path / "store", pair, expected, check=False)
        wrong += [f"{pair}: {said}"] if said else []
    assert not wrong, "\n".join(wrong[:20])
    assert tried >= 40


def test_all_files_of_an_older_moment_are_gone_on_from(stores: Made, tmp_path: Path) -> None:
    """A whole copy is no damage: the start takes in what the copy had not seen yet."""
    shutil.copytree(stores.after(1), tmp_path / "store")
    stores.start(tmp_path / "store")
    assert slates(tmp_path / "store") == slates(stores.after(BATCHES))
