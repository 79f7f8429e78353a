"""Records of evaluations from made-up rows."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from bench.experiments import Judging, Row

COMMIT = "0123456789abcdef"


def judged(case: str, rows: list[Row], judging: Judging, shared: Row) -> dict[str, Any]:
    """The recorded results of a run that left these rows, with what its experiments share."""
    figures = judging.figures(rows)
    known = {"commit": COMMIT, "calibration": 10.0, **shared}
    return {
        "case": case,
        "quick": False,
        "rows": rows,
        "figures": figures,
        "bars": [{**asdict(bar), "held": bar.held} for bar in judging.bars(figures)],
        "settings": {"measured": {row["experiment"]: known for row in rows}},
        "machine": {"cores": 2, "cpu": "C", "python": "3", "java": "17", "spark": "4"},
    }
