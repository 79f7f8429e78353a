"""Leases a SparkContext to a run: the one that this process has, or a new one.

A process can have only one SparkContext. If a notebook or a program already has one, a run shares
it with its other users and leaves it open. A context that Millstream has opened is shared by all
runs of the process, and closed with the last of them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from pyspark import SparkContext

from millstream.driver.startup.background_start import BackgroundStart
from millstream.settings.setting_parts import ClusterSettings
from millstream.spark.context import close_context, open_for


class ContextLease(NamedTuple):
    """A context for one run, until it is released."""

    context: SparkContext
    borrowed: bool
    """True if it was opened by other code, with that code's settings."""

    def release(self) -> None:
        """Ends the lease: the run no longer needs the context."""
        if not self.borrowed:
            _own.release(self.context)


class _OwnContext:
    """The context that Millstream has opened in this process, and how many runs use it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._context: SparkContext | None = None
        self._runs = 0

    def lease(self, open_context: Callable[[], SparkContext]) -> ContextLease:
        with self._lock:
            active = SparkContext._active_spark_context
            if active is not None and active is not self._context:
                return ContextLease(active, True)
            if active is None or self._context is None:
                self._context, self._runs = open_context(), 0
            self._runs += 1
            return ContextLease(self._context, False)

    def release(self, context: SparkContext) -> None:
        with self._lock:
            if context is not self._context:
                return  # other code has stopped it, and another one was opened
            self._runs -= 1
            if not self._runs:
                self._context = None
                close_context(context)


_own = _OwnContext()


def early_lease(app: str, cluster: ClusterSettings) -> BackgroundStart[ContextLease]:
    """Starts to lease a context for an application in the background.

    The JVM then starts while this process imports what it needs for the run.
    """
    return BackgroundStart(
        lambda: lease_context(partial(open_for, app, cluster)), ContextLease.release
    )


def lease_context(open_context: Callable[[], SparkContext]) -> ContextLease:
    """Leases a context for a run; `open_context` opens one if this process has none."""
    return _own.lease(open_context)
