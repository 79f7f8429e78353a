"""`millstream deadletters` over a real sink."""

import json
from pathlib import Path

import pytest

from millstream.sinks.columns import DEADLETTER_COLUMNS
from millstream.sinks.log_sink import LogSink


def letter(function: str | None, key: str, **more: object) -> dict[str, object]:
    names = [column.name for column in DEADLETTER_COLUMNS]
    row: dict[str, object] = dict.fromkeys(names)
    return row | {
        "function": function, "stream": "checkins", "ts": 1_700_000_000_000_001, "key": key,
        "value": {"venue": "x" * 300}, "error": "ValueError: no", "batch": 3, **more,
    }  # fmt: skip


def a_store(here: Path) -> Path:
    """A store as a run that has just begun leaves it."""
    store = here / ".millstream" / "retail"
    store.mkdir(parents=True)
    (store / "lock").touch()
    return store


@pytest.fixture
def letters(here) -> Path:
    directory = a_store(here) / "logs" / "deadletters"
    sink = LogSink(directory, "abc", DEADLETTER_COLUMNS)
    sink.publish(3, [
        letter("count", "ann", file="app.py", line=12),
        letter("count", "bob", timer="hourly"),
        letter(None, "", file="data/1.json", line=2),
    ])  # fmt: skip
    return directory


def test_a_readable_list(millstream, letters):
    """Each dead letter says the batch, the function, the key, the time, the error and the line."""
    result = millstream("deadletters")
    assert result.exit_code == 0
    first, error, value = result.stdout.splitlines()[:3]
    assert first == ("batch 3: count, stream checkins, key 'ann', 2023-11-14T22:13:20.000001Z")
    assert error == "  ValueError: no (app.py:12)"
    assert value.startswith('  value {"venue":"xxx')
    assert value.endswith("...")
    assert "count, timer 'hourly'" in result.stdout
    assert "(data/1.json:2)" in result.stdout


def test_json_is_whole(millstream, letters):
    """--json prints every field, uncut."""
    rows = [json.loads(line) for line in millstream("deadletters", "--json").stdout.splitlines()]
    assert len(rows) == 3
    assert rows[0]["value"] == {"venue": "x" * 300}


def test_limit_and_function(millstream, letters):
    """--limit says that there is more; --function picks."""
    limited = millstream("deadletters", "--limit", "1", "--json")
    assert len(limited.stdout.splitlines()) == 1
    assert "and more" in limited.stderr
    assert len(millstream("deadletters", "--function", "count", "--json").stdout.splitlines()) == 2
    none = millstream("deadletters", "--function", "recognise")
    assert (none.exit_code, none.stdout) == (0, "")
    assert none.stderr == "no dead letters of 'recognise'; there are some of: count\n"
    near = millstream("deadletters", "--function", "cuont")
    assert near.stderr == "no dead letters of 'cuont'; did you mean 'count'?\n"


def test_a_whole_file_has_no_line(millstream, here):
    """A file that cannot be read at all, line 0, is named without a line."""
    directory = a_store(here) / "logs" / "deadletters"
    sink = LogSink(directory, "abc", DEADLETTER_COLUMNS)
    sink.publish(0, [letter(None, "", file="data/1.json.gz", line=0)])
    assert "no (data/1.json.gz)\n" in millstream("deadletters").stdout


def test_a_store_without_dead_letters(millstream, here):
    """No dead letters is good news, not an error."""
    a_store(here)
    result = millstream("deadletters")
    assert (result.exit_code, result.stderr) == (0, "no dead letters\n")
