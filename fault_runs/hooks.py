"""Striking inside this process: at the driver's points, and in place of what a task runs."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any
from unittest.mock import patch

from millstream.engine.points import reach


def at_points(strike: Callable[[str, int], None]) -> AbstractContextManager[Any]:
    """Call `strike` with the point and the batch wherever this process's driver passes a point
    (engine/points.py); what it raises stops the run there."""

    def reached(point: str, batch: int) -> None:
        reach(point, batch)
        strike(point, batch)

    return patch("millstream.spark.runner.reach", reached)


def tasks_by(stages: Any) -> AbstractContextManager[Any]:
    """Have tasks run the stages of this object in place of those of millstream.spark.worker."""
    return patch("millstream.spark.lanes.worker", stages)
