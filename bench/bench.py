"""The context of a case: its folders, its size, and a way to measure a run."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.apart import run_apart
from bench.figures import Batch, rate_after_first
from bench.results import RESULTS


@dataclass(frozen=True, slots=True)
class Bench:
    """One invocation of `python -m bench`."""

    work: Path
    """Input files are kept here; stores and checkpoints come and go."""
    quick: bool = False
    only: tuple[str, ...] = ()
    """The experiments of a case to run; empty: all of them."""
    results: Path = RESULTS
    """The folder with the results of an earlier run."""

    @property
    def data(self) -> Path:
        return self.work / "data"

    def fresh(self, name: str) -> Path:
        """An unused path for a store or a checkpoint."""
        path = self.work / name
        shutil.rmtree(path, ignore_errors=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def say(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    def measure(self, what: str, function: Callable[..., Any], **arguments: Any) -> dict[str, Any]:
        """Run a function of `on_millstream` or `on_spark` apart; returns its row of the table."""
        self.say(f"  {what} ...")
        given = {k: str(v) if isinstance(v, Path) else v for k, v in arguments.items()}
        result, usage = run_apart(function, **given)
        row = row_of(what, result, usage)
        self.say(f"  {what}: {row['events_per_s']:,.0f} events/s after the first batch")
        return row


def row_of(what: str, result: dict[str, Any], usage: dict[str, float]) -> dict[str, Any]:
    """A row of the table, from a run's result and usage."""
    batches = [Batch(*batch) for batch in result["batches"]]
    row: dict[str, Any] = {
        "what": what,
        "events_per_s": rate_after_first(batches),
        "events": sum(batch.events for batch in batches),
        "batches": sum(batch.events > 0 for batch in batches),
        "whole_s": result["whole_s"],
    }
    if "lanes" in result:
        row["lane"] = "+".join(result["lanes"])
    for name in ("late", "dead_letters"):
        if result.get(name):
            row[name] = result[name]
    return {**row, **usage_columns(usage)}


def usage_columns(usage: dict[str, float]) -> dict[str, float]:
    """The columns about memory (MiB) and the machine."""
    return {
        "driver_mib": round(usage["driver"]),
        "jvm_mib": round(usage["driver_jvm"]),
        "workers_mib": round(usage["workers"]),
        "workers_anon_mib": round(usage["workers_anonymous"]),
        "cpu_others": round(usage["cpu_others"], 2),
    }
