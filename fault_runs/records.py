"""The file of results: bench/results/faults.json, written in one go or in parts."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import msgspec

from bench.results import RESULTS
from fault_runs.result import Result, merged, row_of
from fault_runs.scenario import Scenario

FILE = RESULTS / "faults.json"
CLUSTER_FILE = RESULTS / "cluster_faults.json"
SERVICE_FILE = RESULTS / "service_faults.json"
MOST_TAKEOVER = 10.0
"""Seconds that a standby may take from the end of the lease to its first batch."""


def known_results(path: Path, commit: str) -> list[Result]:
    """The results of this commit in the file; those of another commit are ignored."""
    if not path.exists():
        return []
    found = json.loads(path.read_text())
    if found["commit"] != commit:
        return []
    return msgspec.convert(found["runs"], list[Result])


def record(
    results: Iterable[Result],
    scenarios: Mapping[str, Scenario],
    machine: dict[str, Any],
    commit: dict[str, Any],
    date: str,
) -> dict[str, Any]:
    """All results, in the same form as the benchmarks' results."""
    runs = sorted(results, key=lambda result: (result.fault, result.seed))
    rows = [
        row_of(name, scenario.promise, [run for run in runs if run.fault == name])
        for name, scenario in scenarios.items()
    ]
    bars = [
        _bar(f"{figure} in all runs", sum(row[figure] for row in rows), 0, most=True)
        for figure in ("lost", "doubled")
    ]
    bars += [
        _bar(f"runs of {row['what']}", row["runs"], scenarios[row["what"]].least, most=False)
        for row in rows
        if row["runs"] < scenarios[row["what"]].least
    ]
    bars += [
        _bar(f"takeover_max_s of {row['what']}", row["takeover_max_s"], MOST_TAKEOVER, most=True)
        for row in rows
        if "takeover_max_s" in row
    ]
    notes = [f"{run.fault} --seed {run.seed}: {run.failed}" for run in runs if run.failed]
    return {
        "case": "faults",
        "date": date,
        "quick": False,
        **commit,
        "machine": machine,
        "settings": {name: {"least_runs": one.least} for name, one in scenarios.items()},
        "figures": {"runs": sum(row["runs"] for row in rows)},
        "bars": bars,
        "rows": [row for row in rows if row["runs"] or row["failed"]],
        "notes": notes,
        "runs": [asdict(run) for run in runs],
    }


def write(
    path: Path,
    fresh: Iterable[Result],
    scenarios: Mapping[str, Scenario],
    machine: dict[str, Any],
    commit: dict[str, Any],
    date: str,
) -> None:
    """Add results to the file; replaces those of another commit. Several processes may do this at
    once."""
    path.parent.mkdir(parents=True, exist_ok=True)
    whole = path.with_suffix(".tmp")
    with path.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        results = merged(known_results(path, commit["commit"]), fresh)
        found = {**record(results, scenarios, machine, commit, date), "case": path.stem}
        whole.write_text(json.dumps(found, indent=2) + "\n")
        whole.replace(path)


def _bar(figure: str, value: float, limit: float, *, most: bool) -> dict[str, Any]:
    held = value <= limit if most else value >= limit
    return {"figure": figure, "value": value, "limit": limit, "held": held}
