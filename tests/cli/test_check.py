"""`millstream check` refuses what a run or an agent would, with the same words."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Command = Callable[..., Any]
JOB = """
[app]
name = "errors"

[jobs.errors]
map = "mapping:by_level"
nodes = ["web1", "web2"]
range = "1m"
combine = "sum"
{more}
[jobs.errors.logs]
{logs}
"""


@pytest.fixture
def folder(here: Path) -> Path:
    (here / "mapping.py").write_text("def by_level(record):\n    yield record['level'], 1\n")
    return here


AGENT = ("--log", "x.log", "--root", "http://127.0.0.1:1", "--once")


@pytest.mark.parametrize(
    ("logs", "more", "line", "message"),
    [
        ("pattern = '('", "", 12, "logs: pattern must be a regular expression; got '('"),
        ("pattern = 'x'", "", 12, "logs: pattern must name its groups"),
        (
            "pattern = '(?P<a>.)'\nts = 'time'",
            "",
            13,
            "logs: ts must be one of the pattern's groups, a",
        ),
        (
            "format = 'text'\nts = 'time'",
            "",
            13,
            "logs: ts must be one of a line without a pattern, line",
        ),
        ("format = 'csv'", "", 12, "logs: format must be one of json, text; got 'csv'"),
        ("ts = 'a..b'", "", 12, "logs: ts must be a field, a dotted path or a function"),
        ("ts = 't'\ntime_format = '%Q'", "", 13, "logs: time_format must have the directives"),
        ("ts = 't'\nzone = 'Mars'", "", 13, "logs: zone must be a time zone of this machine"),
        ("ts = 't'\njump = 'far'", "", 13, "logs: jump must be a duration"),
        (
            "pattern = '(?P<a>.)'",
            'by = "sequence"\nsequence = "number"\nrange = 5',
            10,
            "job 'errors': sequence must be one of the pattern's groups, a; got 'number'",
        ),
    ],
)
def test_logs_that_no_agent_could_read(
    folder: Path, millstream: Command, logs: str, more: str, line: int, message: str
) -> None:
    """Both refuse the file, with the line and the same words."""
    text = JOB.format(logs=logs, more=more)
    if more:
        text = text.replace('range = "1m"\n', "")
    (folder / "app.toml").write_text(text)
    checked = millstream("check", "app.toml")
    assert checked.exit_code == 2
    assert f"app.toml:{line}: {message}" in checked.stderr
    agent = millstream("agent", "app.toml", "--node", "web1", *AGENT)
    assert (agent.exit_code, agent.stderr) == (2, checked.stderr)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--node", "web3"), "no job of app 'errors' has a node 'web3'"),
        (("--node", "web1", "--job", "eror"), "app 'errors' has no job 'eror'"),
    ],
)
def test_an_agent_that_could_not_start(
    folder: Path, millstream: Command, words: tuple[str, ...], message: str
) -> None:
    """With --node, whatever an agent would say to its node and job."""
    (folder / "app.toml").write_text(JOB.format(logs="ts = 't'", more=""))
    assert millstream("check", "app.toml", "--node", "web2").exit_code == 0
    checked = millstream("check", "app.toml", *words)
    assert checked.exit_code == 2
    assert message in checked.stderr
    agent = millstream("agent", "app.toml", *words, *AGENT)
    assert (agent.exit_code, agent.stderr) == (2, checked.stderr)


def test_a_log_that_no_agent_could_read(folder: Path, millstream: Command) -> None:
    """With --log, a file that is one JSON array is refused, as an agent does."""
    (folder / "app.toml").write_text(JOB.format(logs="ts = 't'", more=""))
    (folder / "x.log").write_text('[\n{"t": 1}\n]\n')
    checked = millstream("check", "app.toml", "--node", "web1", "--log", "x.log*")
    assert checked.exit_code == 2
    assert "x.log must have a JSON value in each line; it is one array" in checked.stderr
    agent = millstream("agent", "app.toml", "--node", "web1", *AGENT)
    assert agent.exit_code == 2
    assert agent.stderr.endswith(checked.stderr)
    (folder / "x.log").write_text('{"t": 1}\n')
    assert millstream("check", "app.toml", "--node", "web1", "--log", "x.log").exit_code == 0
    assert "--log needs --node" in millstream("check", "app.toml", "--log", "x.log").stderr


@pytest.mark.parametrize(
    ("said", "line", "message"),
    [
        ("source = 'text:in'\npattern = '('", 7, "source 'lines': pattern must be a regular"),
        (
            "source = 'text:in'\nstarts = '.*'",
            7,
            "source 'lines': starts must not match",
        ),
        (
            "source = 'csv:in'\ndelimiter = ';;'",
            7,
            "source 'lines': delimiter must be one",
        ),
        (
            "source = 'csv:in'\nencoding = 'gbk'",
            7,
            "source 'lines': encoding must be utf-8",
        ),
        (
            "source = true\njump = '1h'",
            None,
            "source 'lines': ts must name the field",
        ),
        (
            "source = 'text:in'\npattern = '(?P<a>.)'\nts = 'b'",
            8,
            "source 'lines': ts must be one of the pattern's groups, a; got 'b'",
        ),
        ("source = 'text:in'\nkey = 'host'", 7, "source 'lines': key must be 'line', which is"),
        (
            "source = 'json:in'\npattern = '(?P<a>.)'",
            7,
            "source 'lines': pattern must be left out, or be of text files; got it with the",
        ),
    ],
)
def test_sources_that_could_not_be_read(
    folder: Path, millstream: Command, said: str, line: int | None, message: str
) -> None:
    """The forms of text, with the line where it is known."""
    (folder / "in").mkdir()
    (folder / "app.toml").write_text(
        f"""
[app]
name = "reading"

[streams.lines]
{said}

[elements.count]
element = "count"
keys = "lines"
"""
    )
    checked = millstream("check", "app.toml")
    assert checked.exit_code == 2
    assert message in checked.stderr
    assert line is None or f"app.toml:{line}: " in checked.stderr
