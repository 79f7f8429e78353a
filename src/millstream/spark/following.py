"""A query from its start to its end: waited for, ended when asked, started again if it was not
there in time.

Spark gives a Python process ten seconds to start, and asks for one when a query begins. On a busy
machine that is not always enough. Nothing has been read by then, so the query is started again.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from pyspark.sql.streaming.query import StreamingQuery

from millstream.spark.failures import from_spark, started_too_slowly

if TYPE_CHECKING:
    from millstream.spark.query import Driver

STOP_PATIENCE = 3.0
"""Seconds that a running batch is given to end when the application is stopped."""
STARTS = 5
"""How often a query is started whose Python process is not there in time."""


def follow(driver: Driver, stop: threading.Event | None) -> None:
    """Start the query and wait for its end, or end it when asked."""
    for left in reversed(range(STARTS)):
        query: StreamingQuery | None = None
        again = False
        try:
            query = driver.start()
            _wait(driver, query, stop)
        except PySparkException as error:
            again = left > 0 and not driver.has_begun and started_too_slowly(error)
            if not again:
                raise driver.error or from_spark(error) from None
            driver.say("Spark's Python process did not start in time; trying again")
        finally:
            if not again and query is not None:
                _end(driver, query)
        if not again:
            break
    if driver.error is not None:
        raise driver.error


def _wait(driver: Driver, query: StreamingQuery, stop: threading.Event | None) -> None:
    try:
        # A float is fine.
        while driver.error is None and not query.awaitTermination(0.2):  # type: ignore[arg-type]
            if stop is not None and stop.is_set():
                break
            driver.flush_if_due(stop)
    except KeyboardInterrupt:
        pass


def _end(driver: Driver, query: StreamingQuery) -> None:
    """Stop the query between two batches; a batch that takes too long is cancelled, and repeated
    at the next start."""
    driver.leaving.set()
    between = driver.running.acquire(timeout=STOP_PATIENCE)
    driver.stopping = True
    try:
        query.stop()
    finally:
        if between:
            driver.running.release()
    driver.flush(ended=True)
