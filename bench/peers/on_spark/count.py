"""Counts the keys with PySpark: a Python processor (`transformWithState`), called for each key of a
micro-batch with its rows; the count comes out each time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from on_spark.places import events, run, session
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import (
    StatefulProcessor,
    StatefulProcessorHandle,
    TimerValues,
)


class Count(StatefulProcessor):
    def init(self, handle: StatefulProcessorHandle) -> None:
        self._count = handle.getValueState("count", "count long")

    def handleInputRows(  # noqa: N802  # Spark's spelling
        self,
        key: Any,
        rows: Iterator[Row],
        timerValues: TimerValues,  # noqa: N803
    ) -> Iterator[Row]:
        found = self._count.get()
        count = found[0] if found is not None else 0
        for _ in rows:
            count += 1
        self._count.update((count,))
        yield Row(line=json.dumps([key[0], count, count]))

    def close(self) -> None:
        pass


if __name__ == "__main__":
    spark = session()
    counts = (
        events(spark, "key string, ts long, n int", "")
        .groupBy("key")
        .transformWithState(Count(), "line string", "Append", "None")
    )
    run(spark, counts)
