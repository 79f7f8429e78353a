"""A file that is one JSON array is refused: an agent reads a JSON value from each line."""

from __future__ import annotations

from pathlib import Path

import pytest
from agent_runs import messages, once, placed, running, until, write
from taking_root import Root

import millstream as ms
from millstream.errors import CommandError

ARRAYS = (
    '[\n{"ts": 100, "line": "a"},\n{"ts": 101, "line": "b"}\n]\n',
    '[{"ts": 100, "line": "a"},\n {"ts": 101, "line": "b"}]',
    '[{"ts": 100, "line": "a"}, {"ts": 101, "line": "b"}]',
    '\ufeff\n [ {"ts": 100,\n "line": "a"} ]',
)


@pytest.mark.parametrize("text", ARRAYS)
def test_an_array_is_one_error(tmp_path: Path, root: Root, text: str) -> None:
    """No line of it is a dead letter, and no window is made of it."""
    (tmp_path / "app.log").write_text(text, encoding="utf-8")
    with pytest.raises(
        CommandError, match=r"app.log must have a JSON value in each line; it is on"
    ):
        once(tmp_path, root, placed())
    assert messages(root) == []
    assert not list((tmp_path / "state").rglob("dead-letters.jsonl"))


@pytest.mark.parametrize("text", ARRAYS[:2])
def test_an_array_that_comes_later_ends_the_agent(tmp_path: Path, root: Root, text: str) -> None:
    """Its windows are awaited then, instead of being complete without it."""
    with running(tmp_path, root, placed()) as agent:
        until(lambda: any("waiting" in line for line in agent.said))
        (tmp_path / "app.log.1").write_text(text)
        agent.thread.join(20)
        assert isinstance(agent.failure, CommandError)
    assert sum(one["nodes"]["web1"]["dead"] for one in messages(root)) == 0


def test_lines_and_text_are_read(tmp_path: Path, root: Root) -> None:
    """Lines that are arrays themselves are values, and lines of text may begin with a bracket."""
    (tmp_path / "app.log").write_text('[{"n": 1}]\n[{"n": 2}]\n')
    assert once(tmp_path, root, placed())["dead"] == 2  # the job wants objects
    write(tmp_path / "app.log.1", (100, "a"))
    (tmp_path / "app.log").write_text("[\n{\n")
    logs = ms.windows.Logs(format="text")
    assert once(tmp_path, root, placed(logs), state=tmp_path / "other")["on_time"] == 3
