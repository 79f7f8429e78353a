"""The application of the evaluation: word counts over windows, as an experiment asks for them.

The environment's `BENCH_IMR` names a file of JSON with the jobs: for each its name, its nodes and
the options of `ms.windows.Job`. The root and the agents load this same file. An application's own
folder comes first on the path of imports, so this file imports nothing that lies beside it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import millstream as ms

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


def job_of(options: dict[str, Any]) -> ms.windows.Job:
    """A job from its options; `fidelity` is a name and a part."""
    given = dict(options)
    if given.get("fidelity"):
        name, part = given["fidelity"]
        given["fidelity"] = FIDELITIES[name](part)
    timed = given.get("by", "time") == "time"
    return ms.windows.Job(map=timed_words if timed else words, combine=add, **given)


def application(jobs: list[dict[str, Any]]) -> ms.App:
    """The application with these jobs."""
    app = ms.App("imr-evaluation")
    for one in jobs:
        timed = one["options"].get("by", "time") == "time"
        if timed:
            logs = ms.windows.Logs(pattern=r"(?P<at>\d+) (?P<words>.*)", ts="at", unit="us")
        else:
            logs = ms.windows.Logs(format="text")
        app.add(job_of(one["options"]), name=one["name"], nodes=one["nodes"], logs=logs)
    return app


if "BENCH_IMR" in os.environ:
    app = application(json.loads(Path(os.environ["BENCH_IMR"]).read_text()))
