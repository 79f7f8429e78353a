"""Nexmark's q4 with PySpark: two processors, one for the highest valid bid of an auction, one for
the average of a category. Aggregates over a streaming join cannot be chained without windows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from on_spark.nexmark import AUCTIONS, BIDS
from on_spark.places import events, run, session
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import (
    StatefulProcessor,
    StatefulProcessorHandle,
    TimerValues,
)


class Highest(StatefulProcessor):
    """Bids that come before their auction wait for it."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        kind = "category string, opens long, expires long, price long"
        self._auction = handle.getValueState("auction", kind)
        self._waiting = handle.getListState("waiting", "ts long, price long")

    def handleInputRows(  # noqa: N802  # Spark's spelling
        self,
        key: Any,
        rows: Iterator[Row],
        timerValues: TimerValues,  # noqa: N803
    ) -> Iterator[Row]:
        auction, bids, known = self._auction.get(), list[tuple[int, int]](), True
        for row in rows:
            if row.category is None:
                bids.append((row.ts, row.price))
            else:
                auction, known = (row.category, row.ts, row.expires, None), False
        if auction is None:
            self._waiting.appendList(bids)
            return
        if not known:
            bids += [(bid[0], bid[1]) for bid in self._waiting.get()]
            self._waiting.clear()
        category, opens, expires, before = auction
        prices = [price for at, price in bids if opens <= at <= expires]
        price = max([*prices, *([] if before is None else [before])], default=None)
        if price != before or not known:
            self._auction.update((category, opens, expires, price))
        if price != before:
            yield Row(category=category, price=price, before=before)

    def close(self) -> None:
        pass


class Average(StatefulProcessor):
    def init(self, handle: StatefulProcessorHandle) -> None:
        self._state = handle.getValueState("sum", "sum long, auctions long, changes long")

    def handleInputRows(  # noqa: N802
        self,
        key: Any,
        rows: Iterator[Row],
        timerValues: TimerValues,  # noqa: N803
    ) -> Iterator[Row]:
        found = self._state.get()
        total, auctions, changes = found if found is not None else (0, 0, 0)
        for row in rows:
            total += row.price - (row.before or 0)
            auctions += row.before is None
            changes += 1
        self._state.update((total, auctions, changes))
        yield Row(line=json.dumps([key[0], total / auctions, changes]))

    def close(self) -> None:
        pass


if __name__ == "__main__":
    spark = session()
    bids = events(spark, BIDS, "bids").selectExpr(
        "auction",
        "cast(null as string) as category",
        "ts",
        "cast(null as long) as expires",
        "price",
    )
    auctions = events(spark, AUCTIONS, "auctions").selectExpr(
        "auction", "category", "ts", "expires", "cast(null as long) as price"
    )
    highest = (
        bids.union(auctions)
        .groupBy("auction")
        .transformWithState(Highest(), "category string, price long, before long", "Append", "None")
    )
    averages = highest.groupBy("category").transformWithState(
        Average(), "line string", "Append", "None"
    )
    run(spark, averages)
