"""An agent in trouble: a full buffer while the log is rotated, a clock that is set back."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest
from agent_runs import messages, once, placed, running, until, write
from click.testing import CliRunner
from taking_root import Root

import millstream as ms
from millstream.agent import agent as agent_module
from millstream.agent.delivery.wire import ServerWire
from millstream.agent.log.log_follower import LogFollower
from millstream.cli.main import main
from millstream.errors import ClientError, CommandError
from millstream.wall_clock import wall_clock

WORDS = Path(__file__).with_name("words.py")


def test_files_that_come_and_go_while_reading_is_paused(tmp_path: Path) -> None:
    """With a full buffer nothing is read, but new files are held open: what rotation deletes
    meanwhile is read when the root takes panes again."""
    log, root = tmp_path / "app.log", Root()
    root.answers.extend([503] * 10_000)
    now = int(time.time()) - 100
    write(log, (now, "a"), (now + 1, "b"), (now + 2, "c"))
    with running(tmp_path, root, placed(), buffer=1) as agent:
        until(lambda: (agent.told().get("paused") or "").startswith("buffer"))
        for later in (3, 4, 5):
            log.rename(tmp_path / "app.log.1")  # the one before is deleted by that
            write(log, (now + later, "x"))
            met = str(log.stat().st_ino)
            until(lambda met=met: met in _open_files(log))
        root.answers.clear()
        until(lambda: agent.told().get("read") == 6)
        assert agent.told()["gaps"] == 0


def _open_files(log: Path) -> set[str]:
    """Numbers of the files of a log that this process has open."""
    found = set()
    for one in Path("/proc/self/fd").iterdir():
        if one.exists() and str(log) in os.readlink(one):
            found.add(str(one.stat().st_ino))
    return found


def test_a_buffer_of_nothing_holds_one_pane_after_the_other(tmp_path: Path) -> None:
    """The buffer is not full while nothing waits."""
    write(tmp_path / "app.log", (1, "a"), (2, "b"))
    assert once(tmp_path, Root(), placed(), buffer=0)["on_time"] == 2


def test_it_is_said_how_it_is_while_the_last_panes_wait(tmp_path: Path) -> None:
    """The log is read, and the root takes nothing: the status says so until it does."""
    root = Root()
    root.answers.extend([503] * 10_000)
    write(tmp_path / "app.log", (1, "a"))
    with running(tmp_path, root, placed(), once=True) as agent:
        until(lambda: "takes nothing now" in (agent.told().get("sending_paused") or ""))
        root.answers.clear()
        assert agent.ended()["outbox_bytes"] == 0


def test_a_clock_that_is_set_back_makes_no_record_late(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Panes have ended by a clock that was an hour ahead: a record that brings no time, and comes
    after the clock is right again, is in the pane that is made then; so it is after a start."""
    log, root, ahead = tmp_path / "app.log", Root(), [3_600]

    monkeypatch.setattr(agent_module, "wall_clock", lambda: wall_clock() + ahead[0] * 1_000_000)
    job = placed(ms.windows.Logs(format="text"))
    log.write_text("a\n")
    with running(tmp_path, root, job) as agent:
        until(lambda: any("a" in one["partials"] for one in messages(root)))
        ahead[0] = 0
        log.write_text("a\nb\n")
        until(lambda: agent.told().get("read") == 2)
        assert agent.told()["late"] == 0
    with running(tmp_path, root, job) as agent:
        with log.open("a") as file:
            file.write("c\n")
        until(lambda: agent.told().get("read") == 3)
        assert agent.told()["late"] == 0


def test_a_first_line_that_cannot_be_read(tmp_path: Path) -> None:
    """An unreadable first line is a dead letter, whatever its fault, and has no other effect."""
    first = "[" * 20_000 + "]" * 20_000
    (tmp_path / "app.log").write_text(f"{first}\n{json.dumps({'ts': 1, 'line': 'a'})}\n")
    told = once(tmp_path, Root(), placed())
    assert (told["on_time"], told["dead"]) == (1, 1)


def test_a_pane_that_is_not_the_same_when_the_log_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The whole pane is lost. Its records are counted, exactly as many as were read."""
    monkeypatch.setattr(LogFollower, "again", lambda follower, start, end: iter(()))
    write(tmp_path / "app.log", *((second, "a") for second in range(8)))
    job = placed(range="8s", fidelity=ms.windows.Error(0.05), bounds="count")
    told = once(tmp_path, Root(), job)
    assert (told["on_time"], told["shed"], told["residual"]) == (2, 6, 0)


@pytest.mark.parametrize(
    ("more", "what"),
    [
        ({"serve": "127.0.0.1:0", "children": ("web3",)}, "--children .* 'web3'; .*'web2'"),
        ({"serve": "127.0.0.1:0", "children": ("web1",)}, "--children .* other nodes .* 'web1'"),
        ({"parent": ("zork", "http://127.0.0.1:1")}, "--parent .* 'zork'"),
        ({"parent": ("web1", "http://127.0.0.1:1")}, "--parent .* other nodes .* 'web1'"),
        ({"serve": "127.0.0.1:0", "children": ("web2", "web2")}, "--children .* once.* 'web2'"),
        ({"tree": "wbe2"}, "--tree .* 'wbe2'; did you mean 'web2'"),
    ],
)
def test_a_tree_of_nodes_that_there_are(tmp_path: Path, more: dict[str, object], what: str) -> None:
    """A parent would wait for ever for a child that is none."""
    write(tmp_path / "app.log", (1, "a"))
    with pytest.raises(CommandError, match=what):
        once(tmp_path, Root(), placed(), **more)


def test_an_address_that_is_no_name() -> None:
    """The error is one sentence, not the traceback of a thread."""
    with pytest.raises(ClientError, match=r"url is not valid.*http://a\.\.b:1"):
        ServerWire("http://a..b:1")


def test_niceness_that_may_not_be(monkeypatch: pytest.MonkeyPatch) -> None:
    """A user without the permission gets an error that says so."""

    def refused(more: int) -> int:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "nice", refused)
    given = ["agent", str(WORDS), "--node", "web1", "--log", "x", "--root", "http://root:1"]
    for nice, what in {
        "5": "--nice 5: Operation not permitted",
        "-5": "0 to 19",
        "20": "0 to 19",
    }.items():
        result = CliRunner().invoke(main, [*given, "--nice", nice])
        assert result.exit_code == 2
        assert what in f"{result.output}{result.exception}"
