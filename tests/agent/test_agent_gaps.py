"""Lines that were lost: every pane that may have had some of them says so."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from agent_runs import messages, once, placed, running, until, write
from taking_root import Root

import millstream as ms


def gaps(root: Root) -> list[tuple[int, int, int]]:
    """Returns for each message with a gap: its first pane, the pane after its last, and how much is
    known."""
    told = [(one["pane"], one["until"], one["nodes"]["web1"].get("gap", 0)) for one in sent(root)]
    return [one for one in told if one[2]]


def sent(root: Root) -> list[dict[str, Any]]:
    return [one for one in messages(root) if one["pane"] < one["until"]]


def test_panes_of_a_log_that_went_away(tmp_path: Path, log: Path, root: Root) -> None:
    """The pane that is made then, that of the first line after, and all between; none before, and
    none after."""
    write(log, (100, "a"), (101, "b"))
    job = placed(range="1s")
    once(tmp_path, root, job)
    assert not gaps(root)
    log.unlink()
    write(tmp_path / "app.log2", (105, "c"), (106, "d"))
    once(tmp_path, root, job)
    assert gaps(root) == [(102, 103, -1), (103, 105, -1), (105, 106, -1)]
    assert sent(root)[-1]["partials"] == {"d": 1}


def test_as_much_as_is_known(tmp_path: Path, log: Path, root: Root) -> None:
    """Bytes that were seen and not read, as of a line without its end, are told by their number."""
    write(log, (time.time(), "a"))
    with log.open("a") as file:
        file.write('{"ts": 101')
    job = placed(range="1s")
    with running(tmp_path, root, job):
        until(lambda: root.board.values)
    log.unlink()
    write(tmp_path / "app.log2", (time.time() + 1, "c"))
    with running(tmp_path, root, job):
        until(lambda: gaps(root))
    assert gaps(root)[0][2] == 10
    assert {one[2] for one in gaps(root)[1:]} <= {-1}


def test_a_gap_and_nothing_after_it(tmp_path: Path, log: Path, root: Root) -> None:
    """The gap is reported although no line follows. It is reported once, however often the agent is
    started."""
    write(log, (100, "a"))
    job = placed(range="1s")
    once(tmp_path, root, job)
    log.unlink()
    (tmp_path / "app.log2").write_text("")
    for _ in range(2):
        status = once(tmp_path, root, job)
        assert gaps(root) == [(101, 102, -1)]
        assert status["gaps"] == 1


def test_started_again_after_a_gap(tmp_path: Path, log: Path, root: Root) -> None:
    """The pane of the first line after the gap is marked too if the agent was restarted in
    between."""
    write(log, (100, "a"))
    job = placed(range="1s")
    once(tmp_path, root, job)
    log.unlink()
    (tmp_path / "app.log2").write_text("")
    once(tmp_path, root, job)
    write(tmp_path / "app.log2", (104, "b"), (105, "c"))
    once(tmp_path, root, job)
    assert gaps(root) == [(101, 102, -1), (102, 103, -1), (103, 104, -1), (104, 105, -1)]


def test_panes_that_end_by_the_clock(tmp_path: Path, log: Path, root: Root) -> None:
    """Lost lines were written before they were missed, so panes that begin after that have no
    gap."""
    now = time.time()
    write(log, (now, "a"))
    job = placed(range="1s")
    with running(tmp_path, root, job) as agent:
        until(lambda: root.board.values)
        log.write_text("")
        until(lambda: agent.told().get("gaps") == 1)
        missed = time.time()
        until(lambda: sent(root)[-1]["pane"] > missed + 1)
    marked = {pane for begin, end, _ in gaps(root) for pane in range(begin, end)}
    assert marked
    assert max(marked) <= missed


def test_panes_made_in_rounds(tmp_path: Path, log: Path, root: Root) -> None:
    """A pane that is made later says what was lost when the log was read first."""
    write(log, (100, "a"))
    job = placed(range="4s", fidelity=ms.windows.Error(0.05), bounds="count")
    once(tmp_path, root, job)
    log.unlink()
    write(tmp_path / "app.log2", *((second, "b") for second in range(104, 112)))
    once(tmp_path, root, job)
    marked = {pane for begin, end, _ in gaps(root) for pane in range(begin, end)}
    assert marked == {101, 102, 103, 104}
