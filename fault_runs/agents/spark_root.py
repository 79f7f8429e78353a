"""Runs the root on Spark as users do, and compares its final state with the logs of all nodes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from fault_runs.agents import judging
from fault_runs.agents.app import APPS, NAME, job_of
from fault_runs.agents.running import APP, messages_in
from fault_runs.agents.writing import Log
from fault_runs.outcome import Difference, kept_rows
from fault_runs.spark_app import SparkApp

TREE = "tree"


class SparkRoot(SparkApp):
    """The root of the jobs of `app`."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, f"{APP}:{TREE}")


def judged(store: Path, logs: Mapping[str, Log]) -> Difference:
    """Compares the nodes' messages, and the windows on Spark, with the logs."""
    span, truths = job_of(APPS[TREE]).span, {node: log.truth for node, log in logs.items()}
    messages = messages_in(store)
    told = judging.told(messages, truths)
    late = sum((account.late for account in judging.accounts(messages).values()), Counter())
    rows = ((row["key"], row["value"]) for row in kept_rows(store, NAME))
    found = judging.answers(span, rows)
    return judging.both(told, judging.windows(span, found, list(truths.values()), late))


def residuals(status: str) -> list[int]:
    """The residual of each node, from the root's status."""
    jobs = json.loads(status)["jobs"]
    return [account["residual"] for account in jobs[NAME]["nodes"].values()]
