"""Parquet: values as JSON can carry them, splits by row group, and damage."""

from __future__ import annotations

import datetime as dt
import decimal
import math
import uuid
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from millstream.codec import decode_value, encode_value
from millstream.errors import InputError
from millstream.sources.formats import Bad, InputSplit
from millstream.sources.named_format import format_named

FORMAT = format_named("parquet")


def read(
    path: Path, start: int = 0, stop: int | None = None
) -> tuple[list[tuple[int, Any]], list[Bad]]:
    chunks = list(FORMAT.read(InputSplit(str(path), start, stop)))
    good = [(c.line_of(i), record) for c in chunks for i, record in enumerate(c.records)]
    return good, [one for chunk in chunks for one in chunk.bad]


def written(path: Path, columns: dict[str, Any], **options: Any) -> Path:
    pq.write_table(pa.table(columns), path, **options)
    return path


def test_every_type_becomes_a_value_of_json(tmp_path: Path) -> None:
    """Each type is carried as the module says, nulls and nested values included."""
    utc = pa.timestamp("ns", "Europe/Paris")
    moment = 1_700_000_000_123_456_789
    columns = {
        "int": pa.array([1, None]),
        "float": pa.array([1.5, math.nan]),
        "text": pa.array(["é", None]),
        "zoned": pa.array([moment, None], utc),
        "naive": pa.array([moment // 1_000_000, None], pa.timestamp("ms")),
        "date": pa.array([dt.date(2024, 2, 29), None]),
        "time": pa.array([dt.time(1, 2, 3, 4), None], pa.time64("ns")),
        "span": pa.array([1_500_999, None], pa.duration("ns")),
        "decimal": pa.array([decimal.Decimal("1.50"), None]),
        "binary": pa.array([b"\x00\xff", None]),
        "uuid": pa.array([uuid.UUID(int=1).bytes, None], pa.uuid()),
        "coded": pa.array(["x", None]).dictionary_encode(),
        "list": pa.array([[moment], None], pa.list_(utc)),
        "struct": pa.array([{"d": decimal.Decimal(2), "n": 1}, None]),
        "map": pa.array([[("a", b"b")], None], pa.map_(pa.string(), pa.binary())),
        "numbered": pa.array([[(1, 2)], None], pa.map_(pa.int64(), pa.int64())),
    }
    good, bad = read(written(tmp_path / "a.parquet", columns))
    assert bad == []
    (_, full), (_, empty) = good
    assert full == {
        "int": 1,
        "float": 1.5,
        "text": "é",
        "zoned": "2023-11-14T22:13:20.123456Z",
        "naive": "2023-11-14T22:13:20.123000",
        "date": "2024-02-29",
        "time": "01:02:03.000004",
        "span": 1500,
        "decimal": "1.50",
        "binary": "AP8=",
        "uuid": str(uuid.UUID(int=1)),
        "coded": "x",
        "list": ["2023-11-14T22:13:20.123456Z"],
        "struct": {"d": "2", "n": 1},
        "map": {"a": "Yg=="},
        "numbered": [[1, 2]],
    }
    assert empty == dict.fromkeys(columns)
    assert decode_value(encode_value(full)) == full


def test_one_row_that_cannot_be_carried_is_bad_alone(tmp_path: Path) -> None:
    """An infinity, or a time past the year 9999, costs its row only, and the row is numbered."""
    columns = {
        "x": pa.array([1.0, math.inf, 2.0, 3.0, 4.0]),
        "t": pa.array([0, 0, 2**58, 0, 0], pa.timestamp("us")),
        "m": pa.array([0, 0, 0, 0, 2**62], pa.timestamp("ms")),
    }
    good, bad = read(written(tmp_path / "a.parquet", columns, row_group_size=1))
    assert [(line, record["x"]) for line, record in good] == [(1, 1.0), (4, 3.0)]
    assert [one.line for one in bad] == [2, 3, 5]
    assert "x=inf" in str(bad[0].value)
    assert "years" in bad[1].error


def test_splits_by_row_group_give_every_row_once(tmp_path: Path) -> None:
    """Any cut at row groups gives every row once, with its number in the file."""
    path = written(tmp_path / "a.parquet", {"a": list(range(100))}, row_group_size=7)
    size = path.stat().st_size
    units = FORMAT.units(str(path), size)
    assert units == 15
    for middle in range(units + 1):
        for target in (1, size // 4, size * 2):
            parts = [
                split
                for low, high in ((0, middle), (middle, units))
                if low < high
                for split in FORMAT.splits(str(path), size, units, low, high, target)
            ]
            rows = [row for part in parts for row in read(path, part.start, part.stop)[0]]
            assert rows == [(i + 1, {"a": i}) for i in range(100)]


@pytest.mark.parametrize("damage", ["short", "footer", "middle", "foreign"])
def test_a_damaged_file_is_one_bad_file(tmp_path: Path, damage: str) -> None:
    """Truncated, corrupt or no Parquet at all: one error with line 0, no exception."""
    path = written(tmp_path / "a.parquet", {"a": list(range(1000))})
    data = path.read_bytes()
    path.write_bytes(
        {
            "short": data[:50],
            "footer": data[:-9],
            "middle": data[:20] + bytes(200) + data[220:],
            "foreign": b'{"a": 1}\n' * 20,
        }[damage]
    )
    assert FORMAT.units(str(path), path.stat().st_size) == 1
    good, bad = read(path)
    assert good == []
    assert [one.line for one in bad] == [0]
    assert ("its rows 1 to 1000" if damage == "middle" else "nothing of it was") in bad[0].error


def test_rows_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    """The advice is not to write the rows before and after them again."""
    path = tmp_path / "a.parquet"
    values = [f"{n * 7919 % 10007:05}" * 4 for n in range(3000)]
    table = pa.table({"a": values})
    pq.write_table(table, path, row_group_size=1000, compression="none", use_dictionary=False)
    data = bytearray(path.read_bytes())
    middle = data.index(values[1500].encode())
    data[middle - 4 : middle] = b"\xff\xff\xff\x7f"  # the length of a text
    path.write_bytes(data)
    bad = read(path)[1]
    units = FORMAT.units(str(path), path.stat().st_size)
    found = [read(path, group, group + 1) for group in range(units)]
    assert [len(records) for records, _ in found] == [1000, 0, 1000]
    assert [one.line for one in bad] == [0]
    (told,) = found[1][1]
    assert "its rows 1001 to 2000 are not read, but the others are" in told.error


def test_a_table_without_rows_has_a_unit(tmp_path: Path) -> None:
    """An empty table is read as nothing, without an error."""
    path = written(tmp_path / "a.parquet", {"a": pa.array([], pa.int64())})
    assert FORMAT.units(str(path), path.stat().st_size) == 1
    assert read(path) == ([], [])


def test_vanished_and_replaced_files_stop_the_run(tmp_path: Path) -> None:
    """A file that is gone, or has fewer row groups than were taken, raises."""
    path = tmp_path / "a.parquet"
    with pytest.raises(InputError, match="put it back"):
        read(path)
    written(path, {"a": [1]})
    with pytest.raises(InputError, match="1 row groups now"):
        read(path, 2, 3)
