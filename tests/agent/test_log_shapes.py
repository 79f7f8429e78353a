"""Logs as they are: small ones of the shapes that are met, each against a plain count."""

from __future__ import annotations

import gzip
import random
import re
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from agent_runs import running, until
from generated_cases import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from local_agent import run
from taking_root import Root
from test_lateness import taken

import millstream as ms
from millstream.agent.log import log_files, multiline_records
from millstream.errors import DefinitionError
from millstream.windows.placed import PlacedJob

NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)
ACCESS = r'\S+ \S+ \S+ \[(?P<time>[^]]+)\] "(?P<request>[^"]*)" (?P<status>\d+)'
ACCESS_TIME = "%d/%b/%Y:%H:%M:%S %z"
TRACED = r"(?s)(?P<time>\S+ \S+) (?P<level>\w+) (?P<text>.*)"
TRACED_TIME = "%Y-%m-%d %H:%M:%S"
STARTS = r"\d{4}-\d\d-\d\d "


def keyed(field: str) -> Any:
    def pairs(record: Any) -> Iterator[tuple[str, int]]:
        yield record[field], 1

    return pairs


def add(a: int, b: int) -> int:
    return a + b


def counting(field: str, logs: ms.windows.Logs, **more: Any) -> PlacedJob:
    given = {"map": keyed(field), "combine": add, "range": "10s", **more}
    return PlacedJob(ms.windows.Job(**given), "counts", ("web1",), logs)


def pane_of(at: datetime) -> int:
    return int(at.timestamp()) // 10


def values(messages: list[Any]) -> dict[tuple[int, str], int]:
    board, late, amiss = taken(messages)
    assert (late, amiss) == (0, 0)
    return board.values


def access_log(count: int, behind: float) -> list[tuple[datetime, str, str]]:
    """Lines of a web server: written when they are answered, with the time at which they came."""
    rng, lines = random.Random(19), []
    for number in range(count):
        came = NOON + timedelta(seconds=number // 7)
        status = rng.choice(["200", "200", "304", "404"])
        line = f'10.0.0.{number % 9} - - [{came:{ACCESS_TIME}}] "GET /{number} HTTP/1.1" {status} 5'
        lines.append((came + timedelta(seconds=rng.choice([0, 0, 0, behind])), came, status, line))
    return [(came, status, line) for _, came, status, line in sorted(lines)]


def test_an_access_log_with_inversions(tmp_path: Path) -> None:
    """A request that took two seconds is in the pane in which it came, and none is late."""
    log = access_log(1_000, behind=1.9)
    times = [came for came, _, _ in log]
    assert sum(a > b for a, b in pairwise(times)) > 40
    (tmp_path / "app.log").write_text("".join(f"{line}\n" for _, _, line in log))
    logs = ms.windows.Logs(pattern=ACCESS, ts="time", time_format=ACCESS_TIME, lateness="2s")
    messages, status = run(tmp_path, counting("status", logs))
    assert values(messages) == Counter((pane_of(came), status) for came, status, _ in log)
    assert (status["read"], status["late"], status["dead"]) == (1_000, 0, 0)


def traced_log(count: int) -> list[tuple[datetime, str, str]]:
    """Lines of an application, some of them with a stack trace after them."""
    rng, records = random.Random(7), []
    for number in range(count):
        at = NOON + timedelta(seconds=number // 3)
        level = rng.choice(["INFO", "INFO", "ERROR"])
        text = f"{at:%Y-%m-%d %H:%M:%S} {level} request {number}"
        if level == "ERROR":
            frames = [f"    at shop.Cart.pay(Cart.java:{line})" for line in range(rng.randrange(9))]
            text = "\n".join([text, "java.lang.IllegalStateException: no", *frames, ""])
        records.append((at, level, text))
    return records


TRACES = ms.windows.Logs(
    pattern=TRACED, ts="time", time_format=TRACED_TIME, starts=STARTS, lateness="1s"
)


def test_a_log_with_stack_traces(tmp_path: Path) -> None:
    """A trace belongs to the record before it: nothing is dead, and each record is one."""
    records = traced_log(500)
    (tmp_path / "app.log").write_text("".join(f"{text}\n" for _, _, text in records))
    messages, status = run(tmp_path, counting("level", TRACES))
    assert values(messages) == Counter((pane_of(at), level) for at, level, _ in records)
    assert (status["read"], status["dead"]) == (500, 0)
    again = tmp_path / "again"
    again.mkdir()
    (tmp_path / "app.log").rename(again / "app.log")
    made = values(run(again, counting("text", TRACES))[0])
    texts = Counter(text.split(" ", 3)[3].rstrip("\n") for *_, text in records)
    assert Counter(text for _, text in made) == texts


@settings(max_examples=examples(30), deadline=None)
@given(
    piece=st.integers(40, 600),
    kills=st.lists(st.integers(0, 3), max_size=3),
    seed=st.integers(0, 99),
    parts=st.integers(1, 3),
)
def test_traces_in_any_pieces(
    tmp_path_factory: pytest.TempPathFactory, piece: int, kills: list[int], seed: int, parts: int
) -> None:
    """However the log is read in pieces, rotated between two records, or its agent killed, stack
    traces stay whole."""
    folder, records = tmp_path_factory.mktemp("traces"), traced_log(40 + seed)
    size = -(-len(records) // parts)
    for number in range(parts):
        text = "".join(f"{one}\n" for _, _, one in records[number * size : (number + 1) * size])
        packed = folder / f"app.log.{parts - number}.gz"
        if number + 1 < parts and seed % 2:
            packed.write_bytes(gzip.compress(text.encode()))
        else:
            (folder / f"app.log.{parts - number}").write_text(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log_files, "PIECE", piece)
        for kill in kills:
            run(folder, counting("level", TRACES), puts=kill)
        messages, status = run(folder, counting("level", TRACES))
    assert values(messages) == Counter((pane_of(at), level) for at, level, _ in records)
    assert (status["read"], status["dead"], status["residual"]) == (len(records), 0, 0)


def test_the_last_record_of_a_log_that_is_written(tmp_path: Path) -> None:
    """The last record waits for further lines until the next record begins or the log is silent for
    a while."""
    log, root = tmp_path / "app.log", Root()
    form: dict[str, Any] = {"pattern": TRACED, "ts": "time", "time_format": TRACED_TIME}
    logs = ms.windows.Logs(**form, starts=STARTS, grace="4s")  # the machine may be busy
    job = counting("text", logs, range="1s")
    try:
        with running(tmp_path, root, job), log.open("a", buffering=1) as file:
            until(lambda: (tmp_path / "state" / "status.json").exists())
            now = datetime.now(UTC)
            file.write(f"{now:%Y-%m-%d %H:%M:%S} ERROR it failed\n")
            time.sleep(0.4)  # the agent looks at it meanwhile
            file.write("    at a\n")
            file.write("    at b\n")
            until(lambda: root.board.values)
    finally:
        root.stop()
    assert [text for _, text in root.board.values] == ["it failed\n    at a\n    at b"]


def test_a_record_without_an_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A record of too many lines is cut: what follows is read, as records of their own."""
    monkeypatch.setattr(multiline_records, "MOST_LINES", 10)
    lines = ["2024-01-01 12:00:00 INFO a", *["more"] * 24, "2024-01-01 12:00:01 INFO b"]
    (tmp_path / "app.log").write_text("".join(f"{line}\n" for line in lines))
    messages, status = run(tmp_path, counting("level", TRACES))
    assert values(messages) == {(pane_of(NOON), "INFO"): 2}
    assert (status["read"], status["dead"]) == (4, 2)


def test_latin_1(tmp_path: Path) -> None:
    """The bytes of another encoding are its characters."""
    text = "2024-01-01 12:00:00 café\n2024-01-01 12:00:01 Straße\n2024-01-01 12:00:02 café\n"
    (tmp_path / "app.log").write_bytes(text.encode("latin-1"))
    pattern = r"(?P<time>\S+ \S+) (?P<word>\w+)$"
    logs = ms.windows.Logs(pattern=pattern, ts="time", time_format=TRACED_TIME, encoding="latin-1")
    messages, status = run(tmp_path, counting("word", logs))
    assert values(messages) == {(pane_of(NOON), "café"): 2, (pane_of(NOON), "Straße"): 1}
    assert status["dead"] == 0


@pytest.mark.parametrize("kind", ["text", "json", "json in latin-1", "compressed"])
def test_a_byte_order_mark(tmp_path: Path, kind: str) -> None:
    """At the beginning of each file it is no part of the record."""
    mark = b"\xef\xbb\xbf"
    if kind.startswith("json"):
        logs = ms.windows.Logs(ts="ts", encoding="latin-1" if "latin" in kind else None)
        lines = [b'{"ts": "2024-01-01T12:00:00Z", "word": "a"}\n'] * 2
    else:
        logs = ms.windows.Logs(pattern=r"(?P<time>\S+) (?P<word>\w)$", ts="time")
        lines = [b"2024-01-01T12:00:00Z a\n"] * 2
    first = mark + b"".join(lines)
    if kind == "compressed":
        (tmp_path / "app.log.1.gz").write_bytes(gzip.compress(first))
    else:
        (tmp_path / "app.log.1").write_bytes(first)
    (tmp_path / "app.log").write_bytes(mark + b"".join(lines[:1]))
    messages, status = run(tmp_path, counting("word", logs))
    assert values(messages) == {(pane_of(NOON), "a"): 3}
    assert status["dead"] == 0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"encoding": "utf-16"}, "encoding must be utf-8 or one with a byte for each"),
        ({"encoding": "klingon"}, "encoding must be"),
        ({"starts": "("}, "starts must be a regular expression"),
        ({"starts": ".*"}, "starts must not match every line"),
    ],
)
def test_what_is_refused(options: Any, said: str) -> None:
    """An encoding whose lines cannot be told apart, and what is no regular expression."""
    with pytest.raises(DefinitionError, match=re.escape(said)):
        ms.windows.Logs(**options)


def test_in_toml(tmp_path: Path) -> None:
    """All of it can be said in a file."""
    from millstream.config import load

    (tmp_path / "maps.py").write_text("def levels(record):\n    yield record['level'], 1\n")
    (tmp_path / "app.toml").write_text(
        """
[app]
name = "traces"
[jobs.levels]
map = "maps:levels"
combine = "count"
range = "1m"
nodes = ["web1"]
[jobs.levels.logs]
pattern = '(?s)(?P<time>\\S+ \\S+) (?P<level>\\w+)'
ts = "time"
time_format = "%Y-%m-%d %H:%M:%S"
starts = '\\d{4}-'
encoding = "latin-1"
lateness = "2s"
"""
    )
    placed = load(str(tmp_path / "app.toml")).app.parts["levels"]
    assert isinstance(placed, PlacedJob)
    assert placed.logs is not None
    assert (placed.logs.starts, placed.logs.encoding) == (r"\d{4}-", "iso8859-1")
    assert placed.logs.lateness == "2s"
