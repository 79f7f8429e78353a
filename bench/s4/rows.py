"""The runs of the evaluation as rows, figures and bars. Pure."""

from __future__ import annotations

import os
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from bench.experiments import Figures, Judging, Row
from bench.s4.plan import Fault, Return
from bench.s4.running import Found, Phase
from bench.s4.watching import Used, rate_between, used

BACK = 0.9
"""The fraction of the undisturbed rate that counts as recovered."""
NOTES = [
    "lost, doubled: against the truth of the words, each instance of Eleven and Three and "
    "Aggregation by itself; events: those that Eleven and Three took (each number makes two for "
    "each key)",
    "files: all words are there at once; words_per_s after the first batch; whole_s: the command, "
    "Spark's start included. http: words sent at a rate, or (rate 0) as fast as they are accepted; "
    "words_per_s from the first request to the commit of the last word",
    "w1, w2, ...: the workers; cores: 1.0 is a core that is always busy; mib: memory of its own "
    "JVM, the executor's and its Python, without the store's pages; tasks: commits of a layer by "
    "its Python; spread: the busiest worker's CPU time against the mean, 1.0 is even",
    "a worker has one core to give out, and this machine has two for the workers, the driver, the "
    "server and whoever sends: three workers share what two would have",
    "all processes speak over loopback; the bytes between them were not counted",
]


def of_files(data: str, workers: int, keys: int, words: int, found: Found) -> Row:
    """The row of a run over files."""
    ratio = found.commits[-1].deliveries / max(1, found.commits[-1].words)
    return {
        "what": f"{data}, {_of(workers, 'worker')}, {_of(keys, 'key')}",
        "data": data,
        "workers": workers,
        "keys": keys,
        "words": words,
        **found.counted.row(),
        "whole_s": found.seconds,
        "words_per_s": found.rate,
        "events_per_s": found.rate * ratio,
        "batches": len(found.commits),
        **spent_columns(found.used, found.tasks),
    }


def of_http(workers: int, keys: int, phases: list[Phase]) -> list[Row]:
    """The rows of a run over HTTP, one for each phase; what is counted is all until its end."""
    rows: list[Row] = []
    for phase in phases:
        asked = f"{phase.rate:,} words/s" if phase.rate else "at once"
        rows.append(
            {
                "what": f"{asked}, {_of(workers, 'worker')}, {_of(keys, 'key')}",
                "workers": workers,
                "keys": keys,
                "rate": phase.rate,
                "words": phase.words,
                **phase.counted.row(),
                "sent_per_s": phase.sent_per_s,
                "words_per_s": phase.words_per_s,
                "behind_s": phase.behind_s,
                **spent_columns(phase.used, phase.tasks),
            }
        )
    return rows


def of_fault(fault: Fault, words: int, found: Found) -> Row:
    """The row of a run half way through which workers were killed for good."""
    row = of_files("10 MB", fault.workers, fault.keys, words, found)
    killed, commits = found.marks["killed"], found.commits
    before = rate_between(commits, commits[0].at, killed)
    after = rate_between(commits, killed, commits[-1].at)
    return {
        **row,
        "what": fault.what,
        "killed": fault.killed,
        "before_per_s": before,
        "after_per_s": after,
        "ratio": after / before if before else 0.0,
    }


def of_return(plan: Return, found: Found) -> list[Row]:
    """The rows of the run in which one worker of two dies and comes back: one for each time."""
    marks, commits = found.marks, found.commits
    times = {
        "undisturbed": (commits[0].at + plan.warm, marks["killed"]),
        "one worker of two dead": (marks["killed"], marks["returning"]),
        "the worker is back": (marks["returned"] + plan.settle, commits[-1].at),
    }
    ratio = commits[-1].deliveries / max(1, commits[-1].words)
    rows: list[Row] = []
    for what, (since, until) in times.items():
        rate = rate_between(commits, since, until)
        rows.append(
            {
                "what": what,
                "workers": 2,
                "keys": plan.keys,
                "seconds": until - since,
                "words_per_s": rate,
                "events_per_s": rate * ratio,
                "ratio": rate / rows[0]["words_per_s"] if rows and rows[0]["words_per_s"] else 1.0,
                **spent_columns(used(found.samples, since, until), {}),
            }
        )
    rows[-1].update(found.counted.row(), words=plan.words, whole_s=found.seconds)
    rows[-1]["back_s"] = _back(found, BACK * rows[0]["words_per_s"])
    return rows


def _back(found: Found, rate: float) -> float | None:
    """Seconds from a worker's return to the commit of the first batch that was as fast."""
    returned = found.marks["returned"]
    for before, after in pairwise(one for one in found.commits if one.at >= returned):
        if (after.words - before.words) / (after.at - before.at) >= rate:
            return after.at - returned
    return None


def timeline(found: Found) -> dict[str, Any]:
    """The commits of a run and what was done to it, in seconds since the first commit."""
    start = found.commits[0].at
    return {
        "commits": [[round(one.at - start, 2), one.words] for one in found.commits],
        "marks": {name: round(at - start, 2) for name, at in found.marks.items()},
    }


def spent_columns(parts: Mapping[str, Used], tasks: Mapping[str, int]) -> Row:
    """Returns the resources that each part used, and how evenly the workers did. A dead worker is
    left out."""
    row: Row = {}
    workers = sorted(
        name for name, one in parts.items() if name.startswith("worker ") and one.memory > 0
    )
    for name in workers:
        short = f"w{name.removeprefix('worker ')}"
        row[f"{short}_cores"] = round(parts[name].cores, 3)
        row[f"{short}_mib"] = round(parts[name].memory)
        if tasks:
            row[f"{short}_tasks"] = tasks.get(name, 0)
    for name in ("driver", "server", "rest"):
        if name in parts:
            row[f"{name}_cores"] = round(parts[name].cores, 3)
    shares = [parts[name].cores for name in workers]
    if sum(shares) > 0:
        row["spread"] = round(max(shares) * len(shares) / sum(shares), 3)
    if "others" in parts:
        row["cpu_others"] = round(parts["others"].cores / (os.cpu_count() or 1), 3)
    return row


def figures(rows: list[Row]) -> Figures:
    """The figures of all runs."""
    checked = [row for row in rows if "lost" in row]
    by_time = {row["what"]: row["ratio"] for row in rows if row["experiment"] == "returned"}
    asked = [row["sent_per_s"] / row["rate"] for row in rows if row.get("rate")]
    files = [row for row in rows if row["experiment"] == "files"]
    even = [row["spread"] for row in files if row["workers"] > 1]
    found = {
        "lost": sum(row["lost"] for row in checked),
        "doubled": sum(row["doubled"] for row in checked),
        "runs": len(checked),
        "events": sum(
            row["three"] + row["eleven"]
            for row in checked
            if row["experiment"] != "http" or row["rate"] == 0
        ),
    }
    if asked:
        found["rate_of_asked"] = min(asked)
    if files:
        found["words_per_s"] = max(row["words_per_s"] for row in files)
        found["events_per_s"] = max(row["events_per_s"] for row in files)
        found["spread_most"] = max(even, default=0.0)
    if by_time:
        found["dead_of_two"] = by_time["one worker of two dead"]
        found["returned"] = by_time["the worker is back"]
    return found


BARS: dict[str, tuple[float, bool]] = {
    "lost": (0, False),
    "doubled": (0, False),
    "failed": (0, False),
    "rate_of_asked": (0.98, True),
    "dead_of_two": (0.5, True),
    "returned": (BACK, True),
}
JUDGING = Judging({}, BARS, NOTES, figures)


def _of(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"
