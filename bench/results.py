"""The JSON file of a case's results."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.figures import Outcome

RESULTS = Path(__file__).resolve().parent / "results"


def record(
    outcome: Outcome, machine: dict[str, Any], commit: dict[str, Any], date: str, quick: bool
) -> dict[str, Any]:
    """The record of one run of a case. A quick run's bars are not judged."""
    bars = [{**asdict(bar), "held": None if quick else bar.held} for bar in outcome.bars]
    return {
        "case": outcome.case,
        "date": date,
        "quick": quick,
        **commit,
        "machine": machine,
        "settings": outcome.settings,
        "figures": outcome.figures,
        "bars": bars,
        "rows": outcome.rows,
        "notes": outcome.notes,
    }


def write(folder: Path, found: dict[str, Any]) -> Path:
    """Write a record; that of a quick run never replaces that of a full one."""
    folder.mkdir(parents=True, exist_ok=True)
    name = f"{found['case']}-quick.json" if found["quick"] else f"{found['case']}.json"
    path = folder / name
    fresh = path.with_suffix(".tmp")
    fresh.write_text(json.dumps(found, indent=2) + "\n")
    fresh.replace(path)
    return path
