"""The application of the evaluation: jobs over windows, as an experiment asks for them.

The environment's `BENCH_IMR` names a file of JSON with the jobs: for each its name, its nodes, its
kind (words, clicks or hdfs) and the options of `ms.windows.Job`. The root and the agents load this
same file. An application's own folder comes first on the path of imports, so this file imports
nothing that lies beside it.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

# The examples are found from the checkout, also by Spark's workers.
sys.path.append(str(Path(__file__).resolve().parent.parent.parent))

import millstream as ms
from examples import click_sessions, hdfs_writes

FIDELITIES: dict[str, Callable[[float], Any]] = {
    "area": ms.windows.Area,
    "drawn": partial(ms.windows.Area, drawn=True),
    "spatial": ms.windows.Spatial,
    "temporal": ms.windows.Temporal,
    "error": ms.windows.Error,
}


def timed_words(record: dict[str, str]) -> Iterator[tuple[str, int]]:
    """The words of a line whose time was taken off."""
    for word in record["words"].split():
        yield word, 1


def words(record: dict[str, str]) -> Iterator[tuple[str, int]]:
    """The words of a line."""
    for word in record["line"].split():
        yield word, 1


def add(a: int, b: int) -> int:
    return a + b


Made = tuple[ms.windows.Job, ms.windows.Logs]
"""A job, and how its logs are read."""


def made(kind: str, options: dict[str, Any]) -> Made:
    """A job of a kind from its options; `fidelity` is a name and a part."""
    given = dict(options)
    if given.get("fidelity"):
        name, part = given["fidelity"]
        given["fidelity"] = FIDELITIES[name](part)
    if kind == "clicks":
        return click_sessions.click_sessions(**given), click_sessions.LOGS
    if kind == "hdfs":
        return hdfs_writes.block_writes(**given), hdfs_writes.LOGS
    if given.get("by", "time") == "time":
        logs = ms.windows.Logs(pattern=r"(?P<at>\d+) (?P<words>.*)", ts="at", unit="us")
        return ms.windows.Job(map=timed_words, combine=add, **given), logs
    return ms.windows.Job(map=words, combine=add, **given), ms.windows.Logs(format="text")


def application(jobs: list[dict[str, Any]]) -> ms.App:
    """The application with these jobs."""
    app = ms.App("imr-evaluation")
    for one in jobs:
        job, logs = made(one["kind"], one["options"])
        app.add(job, name=one["name"], nodes=one["nodes"], logs=logs)
    return app


if "BENCH_IMR" in os.environ:
    app = application(json.loads(Path(os.environ["BENCH_IMR"]).read_text()))
