"""ShuffleBench's shape with PySpark: a function finds the rules, a processor is their consumers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from matching import Rules
from on_spark.places import events, run, session
from pyspark.sql import Row
from pyspark.sql.functions import explode, udf
from pyspark.sql.streaming.stateful_processor import (
    StatefulProcessor,
    StatefulProcessorHandle,
    TimerValues,
)

rules = Rules()


class Consume(StatefulProcessor):
    """Holds the count and the sum of a rule's records, which come out with each micro-batch."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._state = handle.getValueState("state", "count long, total long")

    def handleInputRows(  # noqa: N802  # Spark's spelling
        self,
        key: Any,
        rows: Iterator[Row],
        timerValues: TimerValues,  # noqa: N803
    ) -> Iterator[Row]:
        found = self._state.get()
        count, total = (found[0], found[1]) if found is not None else (0, 0)
        for row in rows:
            count += 1
            total += row.number
        self._state.update((count, total))
        yield Row(line=json.dumps([key[0], [count, total], count]))

    def close(self) -> None:
        pass


if __name__ == "__main__":
    spark = session()
    match = udf(lambda number: list(rules.matching(number)), "array<string>")
    records = events(spark, "key string, ts long, number long, pad string", "")
    matched = records.withColumn("rule", explode(match("number")))
    states = matched.groupBy("rule").transformWithState(Consume(), "line string", "Append", "None")
    run(spark, states)
