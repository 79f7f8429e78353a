"""Nexmark's q4 with Bytewax: the highest valid bid of each auction, then the average of a category,
which comes out at the end. Bids that come before their auction wait for it."""

from __future__ import annotations

from typing import Any

from bytewax import operators as op
from bytewax.dataflow import Dataflow
from bytewax.operators import StatefulLogic
from on_bytewax.places import lines, written
from on_bytewax.windows import by

Change = tuple[str, tuple[int, int | None]]
"""A category, the new highest price of one of its auctions, and the one before."""


class Highest(StatefulLogic[Any, Change, Any]):
    def __init__(self, resumed: Any) -> None:
        self._auction: Any = None
        self._price: int | None = None
        self._waiting: list[Any] = []
        if resumed is not None:
            self._auction, self._price, self._waiting = resumed

    def on_item(self, value: Any) -> tuple[list[Change], bool]:
        if "expires" in value:
            self._auction = value
            waiting, self._waiting = self._waiting, []
            found = [change for bid in waiting for change in self._bid(bid)]
        elif self._auction is None:
            self._waiting.append(value)
            found = []
        else:
            found = self._bid(value)
        return found, StatefulLogic.RETAIN

    def _bid(self, bid: Any) -> list[Change]:
        price, before, auction = bid["price"], self._price, self._auction
        valid = auction["ts"] <= bid["ts"] <= auction["expires"]
        if not valid or (before is not None and price <= before):
            return []
        self._price = price
        return [(auction["category"], (price, before))]

    def snapshot(self) -> Any:
        return self._auction, self._price, list(self._waiting)


class Average(StatefulLogic[Any, float, Any]):
    def __init__(self, resumed: Any) -> None:
        state: tuple[int, int] = resumed or (0, 0)
        self._sum, self._auctions = state

    def on_item(self, value: Any) -> tuple[list[float], bool]:
        price, before = value
        self._sum += price - (before or 0)
        self._auctions += before is None
        return [], StatefulLogic.RETAIN

    def on_eof(self) -> tuple[list[float], bool]:
        return [self._sum / self._auctions], StatefulLogic.RETAIN

    def snapshot(self) -> Any:
        return self._sum, self._auctions


flow = Dataflow("q4")
auctions = op.map("auctions", lines("auction lines", flow, "auctions"), by("auction"))
bids = op.map("bids", lines("bid lines", flow, "bids"), by("auction"))
highest = op.stateful("highest", op.merge("both", auctions, bids), Highest)
written("answers", op.stateful("average", op.key_rm("changes", highest), Average))
