"""Nexmark's q5 with Bytewax: a count over sliding windows of each auction, then the highest of each
window, which come out at the end: nothing says when the counts of a window are complete."""

from __future__ import annotations

from typing import Any

from bytewax import operators as op
from bytewax.dataflow import Dataflow
from bytewax.operators import StatefulLogic, windowing
from on_bytewax.places import lines_in_order, written
from on_bytewax.windows import ALIGNED, BEGAN, SLIDE, WINDOW, by, clock, milliseconds

Count = tuple[str, int]
"""An auction, and how many bids it has."""


class Hottest(StatefulLogic[Count, list[Any], Any]):
    def __init__(self, resumed: Any) -> None:
        state: tuple[int, tuple[str, ...]] = resumed or (0, ())
        self._most, self._auctions = state

    def on_item(self, value: Count) -> tuple[list[Any], bool]:
        auction, count = value
        if count > self._most:
            self._most, self._auctions = count, (auction,)
        elif count == self._most:
            self._auctions = (*self._auctions, auction)
        return [], StatefulLogic.RETAIN

    def on_eof(self) -> tuple[list[Any], bool]:
        return [[self._most, sorted(self._auctions)]], StatefulLogic.RETAIN

    def snapshot(self) -> Any:
        return self._most, self._auctions


def by_window(item: tuple[str, tuple[int, int]]) -> tuple[str, Count]:
    auction, (number, count) = item
    return str(BEGAN + number * SLIDE), (auction, count)


flow = Dataflow("q5")
bids = op.map("bids", lines_in_order("lines", flow, "bids_in_one"), by("auction"))
windows = windowing.SlidingWindower(milliseconds(WINDOW), milliseconds(SLIDE), ALIGNED)
counts = windowing.fold_window(
    "counts",
    bids,
    clock,
    windows,
    lambda: 0,
    lambda count, _: count + 1,
    lambda one, other: one + other,
    ordered=False,
)
written("answers", op.stateful("hottest", op.map("windows", counts.down, by_window), Hottest))
