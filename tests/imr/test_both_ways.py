"""The three applications of iMR: a file has one for files and one for agents, of the same job."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from millstream.config import load

EXAMPLES = Path(__file__).parent.parent.parent / "examples"


@pytest.mark.parametrize(
    ("file", "name", "output"),
    [
        ("skewed_words", "words", "shares"),
        ("click_sessions", "sessions", "totals"),
        ("hdfs_writes", "writes", "suspects"),
    ],
)
def test_a_file_has_both_applications(file: str, name: str, output: str) -> None:
    """As `millstream run` and `millstream agent` load them, under the names that the pages give."""
    agents, files = (load(f"{EXAMPLES / file}.py:{one}").app for one in ("app", "files"))
    parts: list[Any] = [app.parts[name] for app in (agents, files)]
    assert parts[0].job == parts[1].job
    assert [part.logs is None for part in parts] == [False, True]
    assert [source.name for source in files.workflow().sources] == list(parts[1].nodes)
    assert f"{name}.panes" in [source.name for source in agents.workflow().sources]
    for app in (agents, files):
        assert {name, f"{name}.windows", output} <= set(app.workflow().outputs)
