"""An agent without an application: the root tells it which jobs to run, and it starts and stops
them while it runs."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from test_agent_live import _has, records, started, until

from millstream.cli.main import main
from millstream.server.lock import served_by

LOGS = """
[jobs.{job}.logs]
pattern = '(?P<number>\\d+) (?P<level>\\w+) (?P<host>\\S+)'
"""
JOB = """
[jobs.{job}]
key = "{key}"
combine = "count"
by = "records"
range = 100
nodes = ["web1"]
"""
HEAD = '[app]\nname = "hosted"\n'


def job(name: str, key: str) -> str:
    return (JOB + LOGS).format(job=name, key=key)


def write(path: Path, numbers: range) -> None:
    with path.open("a") as file:
        file.writelines(f"{n} {('INFO', 'WARN')[n % 3 == 0]} h{n % 5}\n" for n in numbers)


def answers(url: str, stream: str) -> dict[tuple[int, str], int]:
    found = records(url, stream)
    return {(one["value"]["from"], one["key"]): one["value"]["value"]["count"] for one in found}


def test_the_root_says_which_jobs_run(tmp_path: Path) -> None:
    """A job that is added to the application is read from the beginning of the log, beside the one
    that runs; one that is taken away ends, and what it has made is there."""
    app, log, states = tmp_path / "app.toml", tmp_path / "app.log", tmp_path / "state" / "jobs"
    app.write_text(HEAD + job("levels", "level"))
    write(log, range(250))
    with started(tmp_path, "dev", "app.toml", "--store", "store", "--port", "0"):
        url = until(lambda: (there := served_by(tmp_path / "store")) and there.url, tmp_path)
        until(lambda: _has(url, "levels.panes"), tmp_path)
        given = ("--node", "web1", "--log", "app.log*", "--root", url, "--state", "state")
        with started(tmp_path, "agent", *given):
            until(lambda: len(answers(url, "levels")) >= 4, tmp_path)
            app.write_text(HEAD + job("levels", "level") + job("hosts", "host"))
            until(lambda: _has(url, "hosts.panes"), tmp_path)
            until(lambda: len(answers(url, "hosts")) >= 10, tmp_path)
            write(log, range(250, 401))
            until(lambda: len(answers(url, "levels")) >= 8, tmp_path)
            until(lambda: len(answers(url, "hosts")) >= 20, tmp_path)
            levels = answers(url, "levels")
            app.write_text(HEAD + job("hosts", "host"))
            until(lambda: _ended(states / "levels"), tmp_path)
            write(log, range(401, 501))
            until(lambda: len(answers(url, "hosts")) >= 25, tmp_path)
            hosts = answers(url, "hosts")
    for window in range(0, 500, 100):
        numbers = range(window, window + 100)
        expected = Counter(f"h{n % 5}" for n in numbers)
        assert {key: count for (at, key), count in hosts.items() if at == window} == expected
        if window < 400:
            expected = Counter(("INFO", "WARN")[n % 3 == 0] for n in numbers)
            assert {key: n for (at, key), n in levels.items() if at == window} == expected


def _ended(folder: Path) -> Any:
    path = folder / "status.json"
    return path.exists() and json.loads(path.read_text()).get("ended")


@pytest.mark.parametrize("word", [("--once",), ("--job", "levels")])
def test_what_needs_the_application(word: tuple[str, ...]) -> None:
    """Flags that choose among jobs, or end them, are refused where the root does both."""
    given = ("--node", "web1", "--log", "x", "--root", "http://127.0.0.1:1")
    told = CliRunner().invoke(main, ["agent", *given, *word])
    assert told.exit_code == 2
    assert f"{word[0]} needs the application's file" in told.stderr
