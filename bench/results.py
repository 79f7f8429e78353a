"""The JSON that a case leaves behind."""

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
    """All that is known of one run of a case. A quick run's bars are not judged."""
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
    """Write a record; a quick one beside the real one, never over it."""
    folder.mkdir(parents=True, exist_ok=True)
    name = f"{found['case']}-quick.json" if found["quick"] else f"{found['case']}.json"
    path = folder / name
    fresh = path.with_suffix(".tmp")
    fresh.write_text(json.dumps(found, indent=2) + "\n")
    fresh.replace(path)
    return path
