"""A JSON file that is one array is read as its elements."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from generated_cases import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from millstream.sources import json_arrays, line_blocks
from millstream.sources.formats import Bad
from millstream.sources.named_format import format_named

FORMAT = format_named("json")
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text('a"\\[]{},\né', max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=6,
)
OBJECTS = st.dictionaries(st.text('a"]', max_size=3), VALUES, max_size=3)


def read(path: Path) -> tuple[list[tuple[int, Any]], list[Bad]]:
    """Returns the records that the tasks of a batch read, in pieces of a few bytes where a file can
    be split."""
    size = path.stat().st_size
    units = FORMAT.units(str(path), size)
    chunks = [
        chunk
        for split in FORMAT.splits(str(path), size, units, 0, units, 7)
        for chunk in FORMAT.read(split)
    ]
    good = [(c.line_of(i), record) for c in chunks for i, record in enumerate(c.records)]
    return good, [one for chunk in chunks for one in chunk.bad]


def test_pretty_printed_over_many_lines(tmp_path: Path) -> None:
    """Each element is a record, and knows the line on which it begins."""
    path = tmp_path / "a.json"
    path.write_text('\ufeff[\n  {"a": 1},\n  {\n    "a": [2, "]"]\n  }\n]\n', encoding="utf-8")
    assert read(path) == ([(2, {"a": 1}), (3, {"a": [2, "]"]})], [])


@pytest.mark.parametrize("block", [3, 256 * 1024])
@pytest.mark.parametrize("held", [1 << 30, 10])
@settings(
    max_examples=examples(60),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    objects=st.lists(OBJECTS, max_size=5), indent=st.sampled_from([None, 2]), packed=st.booleans()
)
def test_what_python_writes_is_read_back(
    tmp_path: Path, block: int, held: int, objects: list[Any], indent: int | None, packed: bool
) -> None:
    """In one line or over many, compressed or not, whatever is in the elements."""
    data = json.dumps(objects, indent=indent).encode()
    path = tmp_path / ("a.json.gz" if packed else "a.json")
    path.write_bytes(gzip.compress(data) if packed else data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(line_blocks, "BLOCK_BYTES", block)
        patch.setattr(json_arrays, "HELD_BYTES", held)
        good, bad = read(path)
    assert [record for _, record in good] == objects
    assert bad == []


@pytest.mark.parametrize(
    ("text", "records"),
    [
        ('[{"a": 1}]\n[{"a": 2}]\n', [[{"a": 1}], [{"a": 2}]]),
        ("[1, 2]\n[3, 4]\n", [[1, 2], [3, 4]]),
        ("[1, 2]", [[1, 2]]),
        ('{"a": [\n', []),
    ],
)
def test_json_lines_stay_json_lines(tmp_path: Path, text: str, records: list[Any]) -> None:
    """Also if their values are arrays."""
    path = tmp_path / "a.json"
    path.write_text(text)
    assert [record for _, record in read(path)[0]] == records


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('[\n{"a": 1},\n{"a": 2', "it ends too early"),
        ('[\n{"a": 1},\n{"a": "2', "it ends too early"),
        ('[\n{"a": 1}},\n{"a": 2}]', "'}' in line 2 closes another bracket"),
        ('[\n{"a": 1}]\n]', "more follows after its end"),
    ],
)
def test_an_array_that_is_not_whole(tmp_path: Path, text: str, says: str) -> None:
    """None of it is read, and a single error for the file says what to do."""
    path = tmp_path / "a.json"
    path.write_text(text)
    good, bad = read(path)
    assert good == []
    assert [one.line for one in bad] == [0]
    assert says in bad[0].error
    assert "nothing of it was read: write it whole elsewhere" in bad[0].error


def test_an_element_that_cannot_be_decoded(tmp_path: Path) -> None:
    """Only that element is bad. The error has its line."""
    path = tmp_path / "a.json"
    path.write_text('[\n{"a": 1},\n{"a": NaN},\n{"a": 3},\n]')
    good, bad = read(path)
    assert good == [(2, {"a": 1}), (4, {"a": 3})]
    assert [one.line for one in bad] == [3, 5]
    assert "must be one whole JSON value" in bad[0].error


def test_many_elements_in_little_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At most 8,192 elements come at a time, also if they are not kept between two looks."""
    monkeypatch.setattr(json_arrays, "HELD_BYTES", 1000)
    path = tmp_path / "a.json"
    path.write_text(json.dumps([{"n": n} for n in range(20_000)]))
    (split,) = FORMAT.splits(str(path), path.stat().st_size, 1, 0, 1, 7)
    chunks = list(FORMAT.read(split))
    assert max(len(chunk.records) for chunk in chunks) <= 8192
    assert [record["n"] for chunk in chunks for record in chunk.records] == list(range(20_000))
