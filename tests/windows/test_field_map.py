"""A map without code: what it yields, in Python and in TOML, and mistakes with their line."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import millstream as ms
from millstream.agent.panes.pane_combiner import combiner
from millstream.app_file.app_file import read_app
from millstream.errors import DefinitionError, InputError
from millstream.testing import run
from millstream.windows import FieldMap, Job, Logs
from millstream.windows.placed import PlacedJob


@pytest.mark.parametrize(
    ("options", "record", "pairs"),
    [
        ({"key": "level"}, {"level": "INFO"}, [("INFO", 1)]),
        ({"key": "status"}, {"status": 503}, [("503", 1)]),
        ({"key": "user.name"}, {"user": {"name": "ada"}}, [("ada", 1)]),
        ({"key": ["host", "level"]}, {"host": "a", "level": "b"}, [("a/b", 1)]),
        (
            {"key": ["host", "n"], "separator": " "},
            {"host": "a", "n": 3},
            [("a 3", 1)],
        ),
        ({"key": {"constant": "all"}}, {}, [("all", 1)]),
        ({"key": "h", "value": "bytes"}, {"h": "a", "bytes": "512"}, [("a", 512)]),
        ({"key": "h", "value": "s"}, {"h": "a", "s": "0.25"}, [("a", 0.25)]),
        ({"key": "h", "value": "s"}, {"h": "a", "s": 7}, [("a", 7)]),
        (
            {"key": "h", "value": {"field": "user"}},
            {"h": "a", "user": "007"},
            [("a", "007")],
        ),
        ({"split": "line"}, {"line": "to be  or"}, [("to", 1), ("be", 1), ("or", 1)]),
        ({"split": "line", "value": "n"}, {"line": "a b", "n": 2}, [("a", 2), ("b", 2)]),
        ({"split": "line"}, {"line": ""}, []),
        ({"key": "h", "where": {"level": "ERROR"}}, {"h": "a", "level": "INFO"}, []),
        ({"key": "h", "where": {"level": "ERROR"}}, {"level": "INFO"}, []),
        (
            {"key": "h", "where": {"status": {"at_least": 500}}, "numbers": ["status"]},
            {"h": "a", "status": "503"},
            [("a", 1)],
        ),
        (
            {"key": "h", "where": {"status": {"at_least": 500}}},
            {"h": "a", "status": "503"},
            [],
        ),
        (
            {"key": "h", "where": {"size": "-"}, "numbers": ["size"]},
            {"h": "a", "size": "-"},
            [("a", 1)],
        ),
    ],
)
def test_a_record_becomes_pairs(
    options: dict[str, Any], record: Any, pairs: list[tuple[str, Any]]
) -> None:
    """The key, the value and the conditions are those that the fields say."""
    assert FieldMap(**options)(record) == pairs


@pytest.mark.parametrize(
    ("options", "record", "said"),
    [
        ({"key": "level"}, {"levle": "x"}, "no field 'level'; did you mean 'levle'"),
        ({"key": "level"}, {"level": None}, "key must be text or a whole number; got NoneType"),
        ({"key": "a"}, [1], "no field 'a'"),
        ({"key": "h", "value": "n"}, {"h": "a", "n": "-"}, r"'n' must be a number.*got '-'"),
        ({"key": "h", "value": "n"}, {"h": "a", "n": True}, "'n' must be a number"),
        ({"key": "h", "value": "n"}, {"h": "a", "n": "1_0"}, "'n' must be a number"),
        ({"key": "h", "value": "n"}, {"h": "a", "n": "1e999"}, "'n' must be a number"),
        ({"split": "line"}, {"line": 7}, "'line' must be text; got int 7"),
    ],
)
def test_a_record_without_its_fields_fails(options: dict[str, Any], record: Any, said: str) -> None:
    """A missing field does not become a key: the error says what is expected and what was given."""
    with pytest.raises(InputError, match=said):
        FieldMap(**options)(record)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "key must name the field .* or split"),
        ({"key": "a", "split": "b"}, "one of the two"),
        ({"key": "a..b"}, "key must be a field or a dotted path"),
        ({"key": []}, "key must be a field"),
        ({"key": 3}, "key must be a field"),
        ({"key": {"const": "x"}}, "constant = 'text'"),
        ({"key": {"constant": 1}}, "constant = 'text'"),
        ({"split": ""}, "split must be a field"),
        ({"key": "a", "value": 1}, "value must be a field"),
        ({"key": "a", "value": {"number": "x"}}, "value must be a field"),
        ({"key": "a", "where": {}}, "where must be a table"),
        ({"key": "a", "where": {"b": {"over": 1}}}, "where must use known words for 'b'.*'over'"),
        ({"key": "a", "where": {"b": {"below": float("inf")}}}, "where must travel.*JSON"),
        ({"key": "a", "numbers": "b"}, "numbers must be a list"),
        ({"key": "a", "separator": 1}, "separator must be text"),
    ],
)
def test_a_map_that_means_nothing_is_refused(options: dict[str, Any], said: str) -> None:
    """The error names the option."""
    with pytest.raises(DefinitionError, match=f"job: .*{said}"):
        FieldMap(**options)


levels = st.sampled_from(["INFO", "WARN", "ERROR"])
records = st.fixed_dictionaries(
    {"level": levels, "host": st.sampled_from("ab"), "bytes": st.integers(0, 999)},
    optional={"user": st.none() | st.text(max_size=3)},
)


def by_hand(record: Any) -> list[tuple[str, int]]:
    if record["level"] == "INFO":
        return []
    return [(f"{record['host']}/{record['level']}", record["bytes"])]


@given(st.lists(records, max_size=30))
def test_the_map_is_the_function_that_one_would_write(logged: list[Any]) -> None:
    """At an agent, over every algebra's way of combining, it gives what a plain function gives."""
    fields = FieldMap(key=["host", "level"], value="bytes", where={"level": {"is_not": "INFO"}})
    for combine in (ms.algebra.sum(), ms.algebra.count(), None):
        partials: list[dict[str, Any]] = [{}, {}]
        for one, map in zip(partials, (fields, by_hand), strict=True):
            assert combiner(Job(map=map, range="1m", combine=combine))(one, logged) == []
        assert partials[0] == partials[1]


def test_the_reference_gives_the_answers_of_the_function() -> None:
    """A job over streams with the map as data and with a plain function: the same answers."""
    fields = FieldMap(key=["host", "level"], value="bytes", where={"level": {"is_not": "INFO"}})
    found = []
    for map in (fields, by_hand):
        app = ms.App("logs", order="event-time")
        app.source("web1", ts="at", unit="s")
        job = Job(map=map, combine=ms.algebra.sum(), range="10s")
        app.add(job, name="sizes", nodes=["web1"])
        logged = [
            {"at": at, "level": level, "host": "a", "bytes": at}
            for at, level in enumerate(["INFO", "WARN", "ERROR", "WARN"] * 10)
        ]
        found.append(run(app, {"web1": logged}).stream("sizes"))
    assert found[0] == found[1] != []


FILE = """
[app]
name = "logs"

[jobs.failures]
key = "level"
value = "bytes"
where = { status = { at_least = 500 } }
numbers = ["status"]
combine = "sum"
range = "1m"
nodes = ["web1", "web2"]

[jobs.failures.logs]
pattern = '(?P<time>\\S+) (?P<level>\\w+) (?P<status>\\d+) (?P<bytes>\\S+)'
ts = "time"
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "app.toml"
    path.write_text(text)
    return path


def test_a_job_over_text_needs_no_python(tmp_path: Path) -> None:
    """The job in TOML is the job in Python, and its map reads what the pattern gives."""
    app, _ = read_app(written(tmp_path, FILE))
    other = ms.App("logs")
    fields = FieldMap(
        key="level", value="bytes", where={"status": {"at_least": 500}}, numbers=["status"]
    )
    pattern = r"(?P<time>\S+) (?P<level>\w+) (?P<status>\d+) (?P<bytes>\S+)"
    other.add(
        Job(map=fields, combine=ms.algebra.sum(), range="1m"),
        name="failures",
        nodes=["web1", "web2"],
        logs=Logs(pattern=pattern, ts="time"),
    )
    assert app == other
    assert app.parts == other.parts


def test_the_example_of_the_reference_is_a_job(tmp_path: Path) -> None:
    """As it stands in the docs, over a line of an access log."""
    page = (Path(__file__).parents[2] / "docs" / "reference.md").read_text()
    start = page.index("    [jobs.failures]")
    block = page[start : page.index("## ms.windows.Logs", start)]
    text = "[app]\nname = 'logs'\n" + block
    app, _ = read_app(written(tmp_path, text))
    placed = app.parts["failures"]
    assert isinstance(placed, PlacedJob)
    assert placed.logs is not None
    assert placed.logs.pattern is not None
    line = '10.0.0.1 - - [14/Nov/2026:22:13:20 +0000] "GET / HTTP/1.1" {} {}'
    found = []
    for status, size in (("503", "512"), ("200", "512"), ("503", "-")):
        matched = re.match(placed.logs.pattern, line.format(status, size))
        assert matched is not None
        found.append(placed.job.map(matched.groupdict()))
    assert found == [[("10.0.0.1/503", 512)], [], []]


@pytest.mark.parametrize(
    ("old", "new", "line", "said"),
    [
        ('key = "level"', "", 5, "needs 'map'.*or without Python 'key'"),
        ('key = "level"', 'key = "levle"', 6, "key must name one of.*did you mean 'level'"),
        ('value = "bytes"', "value = 3", 7, "value must be a field"),
        ("at_least", "atleast", 8, "got 'atleast'; did you mean 'at_least'"),
        ('numbers = ["status"]', "", 8, r"compare 'status' with text.*numbers = \['status'\]"),
        ('numbers = ["status"]', 'numbers = ["state"]', 9, "numbers must name one of"),
        ('numbers = ["status"]', 'number = ["status"]', 9, "did you mean 'numbers'"),
        ('combine = "sum"', 'map = "x:y"', 0, "no module 'x'"),
    ],
)
def test_mistakes_have_their_line(tmp_path: Path, old: str, new: str, line: int, said: str) -> None:
    """An error in a job's map names the line of the option."""
    with pytest.raises(DefinitionError, match=rf"app\.toml:{line or ''}.*{said}"):
        read_app(written(tmp_path, FILE.replace(old, new)))


def test_a_map_is_a_function_or_fields(tmp_path: Path) -> None:
    """Both at once are refused, at the line of the field."""
    (tmp_path / "job_map_functions.py").write_text("def words(record):\n    return []\n")
    text = FILE.replace('combine = "sum"', 'map = "job_map_functions:words"')
    with pytest.raises(DefinitionError, match=r"app\.toml:6: 'key' in .* must be left out"):
        read_app(written(tmp_path, text))
