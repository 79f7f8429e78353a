"""Parquet columns from types, through whole runs: of outputs, of changes, and of dumps."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import millstream as ms
from millstream.cli.dump import destination, record_of, write
from millstream.driver.in_process import run
from millstream.errors import DefinitionError
from millstream.settings.setting_values import check_address
from millstream.settings.settings import Settings
from millstream.stores.reader import SlateReader


@dataclass
class Score:
    user: str
    points: int


@dataclass
class Total:
    points: int = 0
    last: str | None = None


@dataclass
class LaterTotal:
    points: float = 0.0
    last: str | None = None
    events: int = 0


def application(slate: type = Total, value: type | None = Score) -> ms.App:
    app = ms.App("scores")
    app.source("events", key="k", ts="t", unit="us")
    app.output("scores", value=value)
    app.changes("total")

    @app.map("events", publishes="scores")
    def score(event: Any) -> Any:
        if event.value["n"] < 0:
            yield ms.emit(value="none")
        else:
            yield ms.emit(value={"user": event.key, "points": event.value["n"]})

    @app.update("events", slate=slate)
    def total(event: Any, slate: Any) -> Any:
        slate.points += event.value["n"]
        slate.last = event.key
        if event.value["n"] == 99:
            yield ms.forget()

    return app


def run_over(app: ms.App, root: Path, events: list[tuple[str, int]], **sinks: str) -> None:
    (root / "in").mkdir(exist_ok=True)
    number = len(list((root / "in").iterdir()))
    lines = [{"k": k, "t": 100 * number + at, "n": n} for at, (k, n) in enumerate(events)]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (root / "in" / f"{number}.json").write_text(text)
    given = {"scores": f"parquet:{root / 'scores'}", "total.changes": f"parquet:{root / 'totals'}"}
    sources = {"events": f"json:{root / 'in'}"}
    run(app, Settings.of(app.name, root / "store", sources, given | sinks, available_now=True))


def columns(folder: Path, *names: str) -> list[tuple[Any, ...]]:
    files = sorted(folder.glob("*.parquet"))
    tables = [pq.read_table(file) for file in files]
    rows = [row for table in tables for row in table.to_pylist()]
    return [tuple(row.get(name) for name in names) for row in rows]


def test_outputs_and_changes_have_columns_of_their_types(tmp_path: Path) -> None:
    """Fields are columns; what does not fit the declared type is text, and stops nothing."""
    run_over(application(), tmp_path, [("ann", 3), ("bob", -1), ("cem", 99)])
    scores = columns(tmp_path / "scores", "key", "user", "points", "unfit")
    assert sorted(scores) == [
        ("ann", "ann", 3, None),
        ("bob", None, None, '"none"'),
        ("cem", "cem", 99, None),
    ]
    run_over(application(), tmp_path, [("ann", 99)])
    totals = columns(tmp_path / "totals", "key", "points", "last", "deleted")
    assert sorted(totals[:-1], key=str) == [("ann", 3, "ann", False), ("bob", -1, "bob", False)]
    assert totals[-1] == ("ann", None, None, True)


def test_a_type_that_changes_begins_a_new_file(tmp_path: Path) -> None:
    """Rows of before keep their columns, and what follows has those of the new type."""
    run_over(application(), tmp_path, [("ann", 3)])
    run_over(application(LaterTotal), tmp_path, [("ann", 4)])
    first, second = sorted((tmp_path / "totals").glob("*.parquet"))
    assert pq.read_table(first)["points"].type == pa.int64()
    assert pq.read_table(second)["points"].type == pa.float64()
    assert columns(tmp_path / "totals", "points", "events") == [(3, None), (7.0, 0)]
    # And so does going back to text.
    run_over(
        application(LaterTotal),
        tmp_path,
        [("ann", 1)],
        **{"total.changes": f"parquet:{tmp_path / 'totals'}?columns=json"},
    )
    assert columns(tmp_path / "totals", "slate")[-1] == ('{"points":8.0,"last":"ann","events":0}',)


def test_a_dump_knows_the_type_without_the_code(tmp_path: Path) -> None:
    """The store keeps the columns of a dataclass's slates; `?columns=json` gives text instead."""
    run_over(application(), tmp_path, [("ann", 3), ("bob", 4)])
    store = tmp_path / "store"
    with SlateReader(store) as reader:
        for to in ("dump", "text?columns=json"):
            place = destination(f"parquet:{tmp_path / to}", "total", False)
            write(reader.scan("total"), place, record_of(store, "total", place))
    assert columns(tmp_path / "dump", "key", "points", "last", "unfit") == [
        ("ann", 3, "ann", None),
        ("bob", 4, "bob", None),
    ]
    assert columns(tmp_path / "text", "slate")[0] == ('{"points":3,"last":"ann"}',)


@dataclass
class Timed:
    ts: int


def test_a_field_with_the_name_of_a_column_is_refused(tmp_path: Path) -> None:
    """Before anything runs, with what to do."""
    with pytest.raises(DefinitionError, match=r"the field 'ts' cannot be a column.*\?columns=json"):
        run_over(application(value=Timed), tmp_path, [("ann", 3)])
    text = {"scores": f"parquet:{tmp_path / 'scores'}?columns=json"}
    run_over(application(value=Timed), tmp_path, [("ann", 3)], **text)


@pytest.mark.parametrize("address", ["postgres:t?server=db", "cassandra:shop.t?server=db"])
def test_two_outputs_in_one_table_are_refused(tmp_path: Path, address: str) -> None:
    """Before anything runs: the table would skip the batches of the second."""
    sinks = {"scores": address, "total.changes": address}
    with pytest.raises(DefinitionError, match="must have a table of its own"):
        run_over(application(), tmp_path, [("ann", 3)], **sinks)


def test_a_declared_value_is_a_dataclass() -> None:
    """Anything else is refused where it is declared."""
    with pytest.raises(DefinitionError, match="output 'scores': value must be a dataclass"):
        application(value=dict)


@pytest.mark.parametrize(
    ("sink", "address", "message"),
    [
        (True, "parquet:out?columns=csv", "columns must be json"),
        (False, "parquet:in?columns=json", "only a sink has the option columns"),
    ],
)
def test_the_option_is_checked(sink: bool, address: str, message: str) -> None:
    """A wrong value of the option, or one for a source, is refused."""
    with pytest.raises(DefinitionError, match=message):
        check_address(address, "here", sink=sink)
