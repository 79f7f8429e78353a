"""Rows of every experiment of the evaluation of S4, made up, for tests of what is made of them."""

from __future__ import annotations

from bench.experiments import Row
from bench.s4.plan import Fault, Return
from bench.s4.rows import of_fault, of_files, of_http, of_return
from bench.s4.running import Found, Phase
from bench.s4.truth import Counted
from bench.s4.watching import Commit, Sample, used

COMMITS = [Commit(100.0 + 2 * n, n, 1_000 * n, 6_000 * n, True) for n in range(11)]
SAMPLES = [
    Sample(
        100.0 + n,
        2.0 * n,
        {"worker 1": 0.5 * n, "worker 2": 0.25 * n, "worker 3": 1.0},
        {"worker 1": 10.0 * n, "worker 2": 90.0} | ({"worker 3": 1.0} if n < 5 else {}),
    )
    for n in range(21)
]
MARKS = {"killed": 107.0, "returning": 111.0, "returned": 112.0}
SHARED = {
    "timeline": {
        "commits": [[commit.at - 100.0, commit.words] for commit in COMMITS],
        "marks": {name: at - 100.0 for name, at in MARKS.items()},
    }
}


def rows() -> list[Row]:
    """A few rows of each experiment, as a run leaves them."""
    exact = Counted(6_000, 6_000, 2_000, 0, 0, 2_000)
    spent = used(SAMPLES, 106.0, 120.0)
    tasks = {"worker 1": 12, "worker 2": 8}
    found = Found(exact, 30.0, COMMITS, spent, tasks, 500.0, MARKS, SAMPLES)
    phases = [Phase(rate, 5_000, exact, rate or 9e3, 9e3, 0.2, spent, tasks) for rate in (500, 0)]
    made = {
        "files": [
            of_files(data, 2, keys, 10_000, found)
            for data, keys in (("10 MB", 4), ("10 MB", 8), ("100 MB", 4))
        ],
        "http": of_http(2, 4, phases),
        "fault": [of_fault(Fault(2, 1, 4), 10_000, found)],
        "returned": of_return(Return(10_000, 4, 0.3, 0.5, 1.0, 1.0), found),
    }
    return [{"experiment": name, **row} for name, of in made.items() for row in of]
