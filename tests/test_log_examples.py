"""Logs as they are, with nothing but TOML: the examples against a plain count of their lines."""

from __future__ import annotations

import re
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from driver_runs.harness import kept_rows

import millstream as ms
from millstream.app_file.app_file import read_app
from millstream.driver.in_process import run
from millstream.settings.settings import Settings
from millstream.stores.reader import SlateReader

EXAMPLES = Path(__file__).parent.parent / "examples"
CLOCK = datetime(2026, 11, 17, tzinfo=UTC)
FAILED = re.compile(r"Failed password for .* from (\S+) port")
CLIENT = re.compile(r"\[error\] \[client ([^]]+)\]")
MINUTE = re.compile(r"\[\w{3} (\w{3} \d\d) (\d\d:\d\d):\d\d (\d{4})\] \[error\]")
COMPONENT = re.compile(r" - WARN  \[.*:([^:@\]]+)@\d+\] - ")


def text_of(name: str) -> str:
    (file,) = (EXAMPLES / "data" / name).iterdir()
    return file.read_text()


def found(pattern: re.Pattern[str], text: str) -> dict[str, int]:
    return dict(Counter(match[1] for match in pattern.finditer(text)))


def expected(example: str) -> dict[str, dict[str, int]]:
    """The counts by update, of lines that a regular expression finds."""
    if example == "ssh_failures":
        return {"failures": found(FAILED, text_of("ssh"))}
    if example == "zookeeper_warnings":
        return {"warnings": found(COMPONENT, text_of("zookeeper"))}
    minutes = MINUTE.finditer(text_of("apache"))
    return {
        "by_client": found(CLIENT, text_of("apache")),
        "by_minute": dict(
            Counter(f"{year} {day} {time}" for day, time, year in map(re.Match.groups, minutes))
        ),
    }


SOURCES = {"ssh_failures": "ssh", "apache_errors": "apache", "zookeeper_warnings": "zookeeper"}


@pytest.mark.parametrize("example", SOURCES)
def test_the_reference_counts_the_lines(example: str) -> None:
    """Every count is that of the lines, and no line is a dead letter."""
    app, _ = read_app(EXAMPLES / f"{example}.toml")
    result = ms.testing.run(app, clock=CLOCK).feed_text(SOURCES[example], text_of(SOURCES[example]))
    for update, counts in expected(example).items():
        assert {key: slate.count for key, slate in result.slates(update).items()} == counts
        assert len(counts) >= 2
    assert result.dead_letters == []


@pytest.mark.parametrize("example", SOURCES)
def test_a_run_counts_the_lines(example: str, tmp_path: Path) -> None:
    """The file as it is, run over its data."""
    app, given = read_app(EXAMPLES / f"{example}.toml")
    settings = Settings.of(
        app.name, tmp_path / "store", given["sources"], available_now=True, shards=2
    )
    assert run(app, settings).dead_letters == 0
    with SlateReader(settings.storage.store) as reader:
        for update, counts in expected(example).items():
            slates: dict[str, Any] = {key: reader.get(update, key) for key in counts}
            assert {key: slate.value["count"] for key, slate in slates.items()} == counts


def test_the_worst_addresses() -> None:
    """The addresses with the most failures, the most first."""
    app, _ = read_app(EXAMPLES / "ssh_failures.toml")
    result = ms.testing.run(app, clock=CLOCK).feed_text("ssh", text_of("ssh"))
    assert result.stream("worst")[-1].value["top"] == [["192.0.2.7", 3], ["198.51.100.9", 1]]


def test_a_stack_trace_is_a_part_of_its_record() -> None:
    """A record with all of its lines counts once."""
    app, _ = read_app(EXAMPLES / "zookeeper_warnings.toml")
    result = ms.testing.run(app, clock=CLOCK).feed_text("zookeeper", text_of("zookeeper"))
    broken = [
        event.value for event in result.stream("zookeeper") if "broken" in event.value["message"]
    ]
    assert [value["message"].count("\n") for value in broken] == [3]
    assert len(result.stream("zookeeper")) == 5


def test_a_line_that_does_not_match_is_a_dead_letter_with_its_file_and_line(tmp_path: Path) -> None:
    """The others are counted; the reference says the same line."""
    app, _ = read_app(EXAMPLES / "ssh_failures.toml")
    (tmp_path / "in").mkdir()
    log = tmp_path / "in" / "auth.log"
    log.write_text(text_of("ssh") + "what is this\n" + text_of("ssh"))
    settings = Settings.of(
        app.name,
        tmp_path / "store",
        {"ssh": f"text:{log.parent}"},
        {"deadletters": f"json:{tmp_path / 'dead'}"},
        available_now=True,
        shards=2,
    )
    assert run(app, settings).dead_letters == 1
    (letter,) = kept_rows(settings.storage.store, "deadletters")
    assert (letter["file"], letter["line"], letter["value"]) == (str(log), 9, "what is this")
    assert "does not match the pattern" in letter["error"]
    result = ms.testing.run(app, clock=CLOCK).feed_text("ssh", log.read_text())
    assert [(one.line, one.value) for one in result.dead_letters] == [(9, "what is this")]
