"""Hooks to strike inside this process: at the driver's points, and in the stages of tasks."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any
from unittest.mock import patch

from millstream.driver import cycle
from millstream.driver.driver import Driver
from millstream.engine.points import reach
from millstream.stores.progress import Progress


@contextmanager
def at_points(strike: Callable[[str, int], None]) -> Iterator[None]:
    """Call `strike` with the point and the batch whenever this process's driver passes a point
    (engine/points.py). An exception that it raises stops the run there. One thread at a time calls
    it."""
    one_at_a_time, publish = threading.Lock(), Driver._publish

    def reached(point: str, batch: int) -> None:
        reach(point, batch)
        with one_at_a_time:
            strike(point, batch)

    def published(driver: Driver, progress: Progress) -> cycle.Happening:
        try:
            return publish(driver, progress)
        except Exception as error:  # raised by the strike, in a thread where nothing may raise
            return cycle.PublishFailed(error)

    with (
        patch("millstream.driver.driver.reach", reached),
        patch.object(Driver, "_publish", published),
    ):
        yield


def tasks_by(stages: Any) -> AbstractContextManager[Any]:
    """Make tasks run the stages of this object instead of those of millstream.spark.worker."""
    return patch("millstream.spark.runner.worker", stages)
