"""Several jobs over one reading of a log: each has its own panes, as if it were alone."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread
from typing import Any

import agent_runs
import msgspec
import pytest
from agent_runs import add, until, write
from generated_cases import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from taking_root import Root

import millstream as ms
from millstream.agent.agent import run_jobs
from millstream.agent.options import AgentOptions
from millstream.agent.state import job_folder
from millstream.windows.placed import PlacedJob

Panes = dict[int, dict[str, int]]


def lengths(record: Any) -> Iterator[tuple[str, int]]:
    yield f"{len(record['line'])}", 1


def job(name: str, function: Any, pane: str, **logs: Any) -> PlacedJob:
    made = ms.windows.Job(map=function, combine=add, range=pane, pane=pane)
    form = ms.windows.Logs(**{"ts": "ts", "unit": "s", **logs})
    return PlacedJob(made, name, ("web1",), form)


def jobs() -> list[PlacedJob]:
    return [job("words", agent_runs.words, "1s"), job("lengths", lengths, "3s")]


def read_once(folder: Path, root: Root, *placed: PlacedJob) -> dict[str, dict[str, Any]]:
    options = agent_runs.options(folder, root, once=True)
    folders = {folder / "state" / one.name: one for one in placed}
    statuses = run_jobs(folders, options, Event(), lambda said: None)
    return {name: msgspec.to_builtins(status) for name, status in statuses.items()}


def panes(root: Root, name: str) -> Panes:
    """Returns the posted messages of a job, by pane."""
    found: Panes = {}
    for path, _, body in root.posts:
        for line in body.splitlines() if path == f"/streams/{name}.panes" else ():
            message = json.loads(line)
            if message["partials"]:
                found[message["pane"]] = message["partials"]
    return found


def expected(records: list[tuple[float, str]], name: str) -> Panes:
    found: dict[int, Counter[str]] = {}
    for ts, line in records:
        if name == "words":
            found.setdefault(int(ts), Counter()).update(line.split())
        else:
            found.setdefault(int(ts) // 3, Counter()).update([str(len(line))])
    return {pane: dict(counts) for pane, counts in found.items() if counts}


RECORDS = st.lists(
    st.tuples(st.integers(0, 40), st.text("ab ", min_size=1, max_size=5)), min_size=1, max_size=40
)


@given(RECORDS, st.integers(0, 40), st.integers(0, 40))
@settings(max_examples=examples(25), deadline=None)
def test_each_job_has_all_of_the_log(
    tmp_path_factory: pytest.TempPathFactory, given: Any, first: int, second: int
) -> None:
    """Each job has all of the log, however far it had come when the agent was restarted."""
    folder = tmp_path_factory.mktemp("many")
    records = sorted((float(ts), line) for ts, line in given)
    cuts = sorted((min(first, len(records)), min(second, len(records))))
    root, log, (words, lengths) = Root(tells=False), folder / "app.log", jobs()
    try:
        for one, begin, end in ((words, 0, cuts[0]), (lengths, cuts[0], cuts[1])):
            write(log, *records[begin:end])
            if end:
                read_once(folder, root, one)
        write(log, *records[cuts[1] :])
        statuses = read_once(folder, root, words, lengths)
        for name, status in statuses.items():
            assert (status["read"], status["residual"]) == (len(records), 0)
            if not status["late"]:  # no pane was cut by an end of the log
                assert panes(root, name) == expected(records, name)
    finally:
        root.stop()


def test_one_reading_once_they_have_caught_up(tmp_path: Path, root: Root) -> None:
    """A job that is behind reads alone until it has come as far as the other; then files are read
    once for both, and a line that is written counts once in each."""
    log, now = tmp_path / "app.log", int(time.time()) - 30
    records = [(float(now + n), f"w{n % 3}") for n in range(20)]
    write(log, *records)
    slow = {"grace": "1h"}  # no pane ends by the clock
    words = job("words", agent_runs.words, "1s", **slow)
    by_length = job("lengths", lengths, "3s", **slow)
    read_once(tmp_path, root, words)
    more = [(float(now + 20 + n), f"w{n % 3}") for n in range(3)]
    write(log, *more)
    stop = Event()
    options = agent_runs.options(tmp_path, root)
    folders = {tmp_path / "state" / one.name: one for one in (words, by_length)}
    thread = Thread(target=run_jobs, args=(folders, options, stop, lambda said: None), daemon=True)
    thread.start()
    status = tmp_path / "state" / "lengths" / "status.json"
    try:
        until(lambda: status.exists() and json.loads(status.read_text())["read"] == 23)
        last = [(float(now + 29), "w1")]
        write(log, *last, (float(now + 60), "the panes before it are over"))
        every = records + more + last
        for name in ("words", "lengths"):
            truth = expected(every, name)
            until(lambda name=name, truth=truth: panes(root, name) == truth)  # type: ignore[misc]
    finally:
        stop.set()
        thread.join(20)


def test_a_state_of_one_job_stays_its_own(tmp_path: Path, root: Root) -> None:
    """A folder that was the state of one job goes on being that, when the agent runs several."""
    write(tmp_path / "app.log", (1.0, "a"), (2.0, "b"))
    words, _ = jobs()
    options = AgentOptions(
        node="web1",
        patterns=(str(tmp_path / "app.log*"),),
        root=root.url,
        state=tmp_path / "state",
        memory=1 << 40,
        once=True,
    )
    run_jobs({tmp_path / "state": words}, options, Event(), lambda said: None)
    assert job_folder(tmp_path / "state", "words") == tmp_path / "state"
    assert job_folder(tmp_path / "state", "lengths") == tmp_path / "state" / "jobs" / "lengths"
