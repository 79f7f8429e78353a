"""The tables of an update across keys, and what it may return."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import millstream as ms
from millstream.testing import run


@dataclass
class Held:
    """A slate with a column of each kind."""

    n: int = 0
    share: float = 0.0
    seen: bool = False
    note: str | None = None


@dataclass
class Value:
    """The columns of the values."""

    n: int
    text: str = "none"


def returning(returned: Any) -> ms.testing.Run:
    """A run of one event, whose function returns this."""
    app = ms.App("tables")
    app.source("numbers")

    @app.update("numbers", slate=Held, batch=True, across_keys=True, values=Value)
    def hold(events: pa.Table, slates: pa.Table) -> Any:
        return returned(events, slates) if callable(returned) else returned

    return run(app, [ms.Event("numbers", 5, "k", {"n": 3, "more": 1})])


def test_the_tables_that_a_function_gets() -> None:
    """A row for each event and for each slate, with the defaults of a new key."""
    given: list[Any] = []
    returning(lambda events, slates: given.extend([events, slates]) or {})
    assert given[0].to_pylist() == [
        {"row": 0, "key": "k", "ts": 5, "stream": "numbers", "n": 3, "text": "none"}
    ]
    assert given[1].to_pylist() == [{"key": "k", "n": 0, "share": 0.0, "seen": False, "note": None}]


@pytest.mark.parametrize(
    "returned",
    [
        {"n": [7], "note": ["x"]},
        {"n": pa.array([7.0]), "note": pa.array(["x"]).dictionary_encode()},
        {"n": pa.array([7], pa.uint8()), "note": pa.array(["x"], pa.large_string())},
        {"n": pa.array([Decimal(7)]), "note": pa.array(["x"], pa.string_view())},
        pa.table({"key": ["k"], "n": [7], "note": ["x"]}),
        pd.DataFrame({"n": [7], "note": ["x"]}),
    ],
    ids=["dict", "arrow", "small", "decimal", "table", "pandas"],
)
def test_slates_come_back_in_any_form(returned: Any) -> None:
    """Fields that are left out stay; a column is cast if nothing is lost."""
    assert returning(returned).slate("hold", "k") == Held(7, 0.0, False, "x")


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (None, "must return its slates: an Arrow table, a DataFrame or a dict .* NoneType"),
        ({"m": [1]}, "returned the columns m, which its slate does not have; it has n, share"),
        ({"n": [1, 2]}, "a row for each of its slates, in their order; there are 1, .* returned 2"),
        (pa.table({"key": ["other"]}), "in the order in which they came; the column 'key' differs"),
        ({"n": [1.5]}, "the column 'n' must be int; got double"),
        ({"n": ["7"]}, "the column 'n' must be int; got string"),
        ({"n": [True]}, "the column 'n' must be int; got bool"),
        ({"n": [datetime(2026, 1, 5)]}, "the column 'n' must be int; got timestamp"),
        ({"share": ["0.5"]}, "the column 'share' must be float; got string"),
        ({"seen": [2]}, "the column 'seen' must be bool; got int64"),
        ({"note": [5]}, "the column 'note' must be str; got int64"),
        ({"note": pa.array([5]).dictionary_encode()}, "must be str; got dictionary"),
        (pa.Table.from_arrays([[1], [2]], ["n", "n"]), "returned the column n more than once"),
        ({"n": [None]}, "the column 'n' must not have nulls"),
        ({"share": [math.nan]}, "the column 'share' must be what JSON can carry"),
    ],
)
def test_slates_that_do_not_fit_make_a_dead_letter(returned: Any, message: str) -> None:
    """The error has the expected and the returned values."""
    ended = returning(returned)
    (letter,) = ended.dead_letters
    assert re.search(message, letter.error)
    assert ended.slate("hold", "k") is None
