"""Figures 9, 11 and 12: how far off answers are, by what is asked of a window and how much of the
data it has. No processes: which panes were received decides it, whoever made them.

The applications, their logs and their errors are those of examples/imr: panes are made by the code
that agents run, and a window is put together from those that a specification asks for when it is
just met (`examples.imr.incomplete`). What is drawn differs from window to window; each figure is
the mean over the windows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime
from statistics import fmean
from typing import Any

from bench.bench import Bench
from bench.imr.plan import Clicks, Hdfs, Words
from examples.click_sessions import click_sessions, moment
from examples.hdfs_writes import block_writes
from examples.hdfs_writes import moment as written_at
from examples.imr import (
    click_traffic,
    hdfs_traffic,
    session_truth,
    word_traffic,
    word_truth,
    write_truth,
)
from examples.imr.incomplete import Cell, Panes, drawn, panes_of, spatial, temporal, whole
from examples.skewed_words import word_count
from millstream.windows.job import Job

Row = dict[str, Any]
ASKED = ("drawn", "spatial", "temporal")
SAID = {"drawn": "area, drawn", "spatial": "(X, 100%)", "temporal": "(100%, Y)"}
Measure = Callable[[Job, Panes, Collection[Cell], Collection[Cell]], Any]


def words(bench: Bench, plan: Words) -> list[Row]:
    """Figure 9 (a) and (b): counts and shares of words that are skewed over the nodes."""
    size = plan.panes * plan.lines
    names = tuple(f"node{number}" for number in range(1, plan.nodes + 1))
    given = word_traffic.Words(plan.windows * size, nodes=names)
    job = word_count(range=size, pane=plan.lines)
    logs = {
        node: [(record, record["time"] * 1_000) for record in word_traffic.log(given, number)]
        for number, node in enumerate(names)
    }
    columns = {
        "count": "count_error",
        "frequency": "frequency_error",
        "deviation": "frequency_deviation",
        "words_found": "found",
    }
    measured = (job, panes_of(job, logs), names, range(plan.windows))
    return _rows(bench, *measured, plan.parts, word_truth.measure, columns)


def clicks(bench: Bench, plan: Clicks) -> list[Row]:
    """Figure 11: sessions of users, whose clicks are served by any node."""
    names = tuple(f"web{number}" for number in range(1, plan.nodes + 1))
    given = click_traffic.Clicks(
        plan.users, hours=2 * plan.windows, nodes=names, requests=plan.requests
    )
    job, logs = click_sessions(), _logs(click_traffic.rows(given), moment)
    first = click_traffic.START // session_truth.WINDOW
    columns = {
        "per_user_of_all": "user_error",
        "per_user": "found_user_error",
        "duration": "duration_error",
        "clicks": "clicks_error",
        "total": "total_error",
        "users_found": "found",
    }
    measured = (job, panes_of(job, logs), names, range(first, first + plan.windows))
    return _rows(bench, *measured, plan.parts, session_truth.measure, columns)


def hdfs(bench: Bench, plan: Hdfs) -> list[Row]:
    """Figure 12: histograms of block writes, against those of all the data."""
    names = tuple(f"dn{number}" for number in range(1, plan.nodes + 1))
    given = hdfs_traffic.Cluster(plan.blocks, hours=48 * plan.windows, nodes=names)
    job, logs = block_writes(), _logs(hdfs_traffic.rows(given), written_at)
    first = hdfs_traffic.START // (48 * hdfs_traffic.HOUR)
    columns = {"rejected": "rejects", "distance": "distance", "nodes_found": "found"}
    measured = (job, panes_of(job, logs), names, range(first, first + plan.windows))
    return _rows(bench, *measured, plan.parts, write_truth.measure, columns)


def _logs(
    rows: Any, time_of: Callable[[dict[str, str]], datetime]
) -> dict[str, list[tuple[Any, int]]]:
    """The records of each node with their times, from the lines of all of them."""
    found: dict[str, list[tuple[Any, int]]] = {}
    for node, _, record in rows:
        at = int(time_of(record).astimezone(UTC).timestamp() * 1_000_000)
        found.setdefault(node, []).append((record, at))
    return found


def _rows(
    bench: Bench,
    job: Job,
    panes: Panes,
    nodes: tuple[str, ...],
    windows: range,
    parts: tuple[float, ...],
    measure: Measure,
    columns: Mapping[str, str],
) -> list[Row]:
    """A row for each specification and part: the errors' means over the windows."""
    rows: list[Row] = []
    for asked in ASKED:
        for part in parts:
            found = []
            for window in windows:
                of = job.span.panes_of(window)
                got = _received(asked, nodes, of, part, window)
                found.append((measure(job, panes, whole(nodes, of), got), len(got)))
            row: Row = {
                "what": f"{SAID[asked]}, {part:.0%}",
                "asked": asked,
                "part": part,
                "windows": len(windows),
                "panes": fmean(count for _, count in found) / (len(nodes) * job.span.panes),
            }
            for name, column in columns.items():
                row[column] = fmean(getattr(errors, name) for errors, _ in found)
            rows.append(row)
    first = next(iter(columns.values()))
    for row in rows:
        if row["part"] == 0.5:
            bench.say(f"    {row['what']}: {first} {row[first]:.1%}")
    return rows


def _received(
    asked: str, nodes: tuple[str, ...], panes: range, part: float, window: int
) -> frozenset[Cell]:
    if asked == "drawn":
        return drawn(nodes, panes, part, 0)
    return (
        spatial(nodes, panes, part) if asked == "spatial" else temporal(nodes, panes, part, window)
    )
