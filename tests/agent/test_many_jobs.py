"""Many jobs over one reading of a log: each has what it would have alone."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import Any

import agent_runs as runs
import pytest
from agent_runs import add, run_agent, until, words, write
from generated_cases import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from local_agent import Killed, LocalAgent
from taking_root import Root
from test_lateness import taken

import millstream as ms
from millstream.agent.agent import run_jobs
from millstream.agent.job_orders import JobOrders
from millstream.agent.log import log_files
from millstream.agent.log.log_files import LogFile
from millstream.agent.options import AgentOptions
from millstream.agent.state import job_folder
from millstream.errors import ClientError, StoreLocked
from millstream.windows.placed import PlacedJob

Record = tuple[float, str]


def job(name: str, pane: int = 1, **logs: Any) -> PlacedJob:
    made = ms.windows.Job(map=words, combine=add, range=f"{pane}s")
    given = {"ts": "ts", "unit": "s", "lateness": "2s", **logs}
    return PlacedJob(made, name, ("web1",), ms.windows.Logs(**given))


def plain(records: list[Record], pane: int) -> dict[tuple[int, str], int]:
    return Counter((int(ts // pane), word) for ts, line in records for word in line.split())


def values(agent: LocalAgent, name: str) -> dict[tuple[int, str], int]:
    board, late, amiss = taken(agent.sent(name))
    assert (late, amiss) == (0, 0)
    return board.values


RECORDS: list[Record] = [(100 + number / 3, "ab"[number % 2]) for number in range(90)]


SOON = int(time.time()) // 60 * 60 + 1_800
COMING: list[Record] = [(ts - 100 + SOON, word) for ts, word in RECORDS]
"""The panes of a log that is followed: the clock does not end them yet."""


@pytest.fixture
def bytes_read(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """Returns the number of log bytes that were read from files."""
    read, sizes = LogFile.read, list[int]()

    def counting(file: LogFile) -> Any:
        chunk = read(file)
        sizes.append(0 if chunk is None else chunk.size)
        return chunk

    monkeypatch.setattr(LogFile, "read", counting)
    return lambda: sum(sizes)


def test_the_log_is_read_once(tmp_path: Path, log: Path, bytes_read: Callable[[], int]) -> None:
    """Three jobs with panes of their own, one reading of the file."""
    write(log, *RECORDS)
    agent = LocalAgent(tmp_path, [job("a"), job("b", 2), job("c", 5, grace="1s", lateness="3s")])
    agent.run()
    for name, pane in (("a", 1), ("b", 2), ("c", 5)):
        assert values(agent, name) == plain(RECORDS, pane)
        assert agent.status(name)["read"] == len(RECORDS)
    assert bytes_read() == log.stat().st_size


def test_jobs_that_read_lines_in_another_way(tmp_path: Path, log: Path) -> None:
    """Jobs whose logs say something else of a line have a reading of their own."""
    write(log, *RECORDS)
    text = ms.windows.Job(map=words, combine=add, by="records", range=30)
    others = PlacedJob(text, "text", ("web1",), ms.windows.Logs(format="text"))
    agent = LocalAgent(tmp_path, [job("a"), others])
    agent.run()
    assert values(agent, "a") == plain(RECORDS, 1)
    assert agent.status("text")["on_time"] == len(RECORDS)


@settings(max_examples=examples(40), deadline=None)
@given(
    records=st.lists(
        st.tuples(st.integers(100, 140), st.sampled_from(["a", "b a"])), min_size=1, max_size=60
    ),
    piece=st.integers(40, 400),
    kills=st.lists(st.integers(0, 6), max_size=4),
    panes=st.lists(st.sampled_from([1, 2, 3, 7]), min_size=2, max_size=3),
    parts=st.integers(1, 3),
)
def test_killed_at_different_places(
    tmp_path_factory: pytest.TempPathFactory,
    records: list[Record],
    piece: int,
    kills: list[int],
    panes: list[int],
    parts: int,
) -> None:
    """Whenever the agent is killed, each job goes on at its own place: every line is in its pane of
    every job once."""
    folder, records = tmp_path_factory.mktemp("many"), sorted(records)
    size = -(-len(records) // parts)
    for number in range(parts):
        path = folder / f"app.log.{parts - number}"
        path.touch()
        write(path, *records[number * size : (number + 1) * size])
    jobs = [job(f"j{number}", pane) for number, pane in enumerate(panes)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log_files, "PIECE", piece)
        for kill in kills:
            try:
                LocalAgent(folder, jobs, puts=kill).run()
            except Killed:
                pass
        agent = LocalAgent(folder, jobs)
        agent.run()
    for number, pane in enumerate(panes):
        assert values(agent, f"j{number}") == plain(records, pane)
        assert agent.status(f"j{number}")["residual"] == 0


class Following:
    """An agent in a thread that follows a log, and is given orders."""

    def __init__(self, folder: Path, *jobs: PlacedJob) -> None:
        self.orders = JobOrders()
        self.agent = LocalAgent(folder, jobs, orders=self.orders, once=False)
        self._thread = Thread(target=self.agent.run, daemon=True)
        self._thread.start()

    def read(self, name: str) -> int:
        """Records that a job has read."""
        running = self.agent.loop.jobs.get(name)
        return -1 if running is None else running.panes.status().read

    def readers(self) -> int:
        return sum(len(one._readers) for one in self.agent.loop._readings.values())

    def end(self) -> None:
        self.agent.stop.set()
        self._thread.join(10)
        assert not self._thread.is_alive()


def test_jobs_come_and_go(tmp_path: Path, log: Path) -> None:
    """A job that is added begins at the beginning of the log and then shares the reading; the
    others go on. One that was stopped goes on where it was when it is started again."""
    write(log, *COMING[:30])
    following = Following(tmp_path, job("a"))
    until(lambda: following.read("a") == 30)
    following.orders.start_job(job("b", 5))
    until(lambda: following.read("b") == 30)
    until(lambda: following.readers() == 1)
    write(log, *COMING[30:60])
    until(lambda: following.read("a") == following.read("b") == 60)
    following.orders.stop_job("a")
    until(lambda: following.read("a") == -1)
    write(log, *COMING[60:])
    until(lambda: following.read("b") == 90)
    following.orders.start_job(job("a"))
    until(lambda: following.read("a") == 90)
    until(lambda: following.readers() == 1)
    following.end()
    last = LocalAgent(tmp_path, [job("a"), job("b", 5)])
    last.run()
    assert values(last, "a") == plain(COMING, 1)
    assert values(last, "b") == plain(COMING, 5)


def test_no_job_yet(tmp_path: Path, log: Path) -> None:
    """A hosting agent waits for its first job. A job that cannot be started is reported, and the
    others continue."""
    write(log, *COMING)
    following = Following(tmp_path)
    following.orders.start_job(job("a"))
    until(lambda: following.read("a") == 90)
    following.orders.stop_job("a")
    following.orders.start_job(job("a", 7))
    until(lambda: any("'a' is not started" in said for said in following.agent.said))
    following.orders.start_job(job("b"))
    until(lambda: following.read("b") == 90)
    following.end()
    assert "the panes of job 'a' were 1s and are 7s now" in "".join(following.agent.said)


def test_a_job_that_cannot_go_on(tmp_path: Path, log: Path) -> None:
    """The job ends and says why. The other jobs continue."""
    write(log, *COMING)
    following = Following(tmp_path, job("a"), job("b"))
    until(lambda: following.read("b") == 90)

    def refused() -> None:
        raise ClientError("the root has no such job")

    following.agent.jobs["a"].check = refused  # type: ignore[method-assign]
    following.agent.tick = following.agent.loop.tick
    until(lambda: following.read("a") == -1)
    write(log, (SOON + 100, "c"))
    until(lambda: following.read("b") == 91)
    following.end()
    assert [said for said in following.agent.said if "job 'a' ends: the root has no" in said]


def options(folder: Path, root: Root) -> AgentOptions:
    return runs.options(folder, root, once=True)


def test_the_folder_of_a_single_job(tmp_path: Path, log: Path) -> None:
    """The files of a single job stay its own when it later runs beside others. The folder has one
    agent only."""
    from threading import Event

    root = Root()
    try:
        write(log, *COMING[:45])
        given = options(tmp_path, root)
        first = run_agent(job("counts"), given, Event(), print)
        assert first.read == 45
        write(log, *COMING[45:])
        both = {job_folder(given.state, one.name): one for one in (job("counts"), job("more", 2))}
        second = run_jobs(both, given, Event(), print)
        assert {name: one.read for name, one in second.items()} == {"counts": 90, "more": 90}
        assert not (given.state / "jobs" / "counts").exists()
        assert (given.state / "jobs" / "more" / "agent.json").exists()
        third = run_agent(job("counts"), given, Event(), print)
        assert third.read == 90
        stop, live = Event(), AgentOptions(**{**_fields(given), "once": False})
        thread = Thread(target=run_jobs, args=(both, live, stop, print), daemon=True)
        thread.start()
        until(lambda: json.loads((given.state / "status.json").read_text()).get("ended") is None)
        with pytest.raises(StoreLocked):
            run_agent(job("counts"), given, Event(), print)
        stop.set()
        thread.join(10)
        assert not thread.is_alive()
    finally:
        root.stop()
    panes = [one for path, _, body in root.posts for one in body.splitlines() if "counts" in path]
    assert sum(sum(json.loads(one)["partials"].values()) for one in panes) >= 90


def _fields(given: AgentOptions) -> dict[str, Any]:
    return {name: getattr(given, name) for name in AgentOptions.__slots__}
