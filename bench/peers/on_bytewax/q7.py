"""Nexmark's q7 with Bytewax: the highest bid of tumbling windows, all under one key."""

from __future__ import annotations

from typing import Any

from bytewax import operators as op
from bytewax.dataflow import Dataflow
from bytewax.operators import windowing
from on_bytewax.places import lines_in_order, written
from on_bytewax.windows import ALIGNED, BEGAN, WINDOW, clock, milliseconds, parsed


def together(line: str) -> tuple[str, Any]:
    return "all", parsed(line)


def started(item: tuple[str, tuple[int, Any]]) -> tuple[str, int]:
    _, (number, bid) = item
    return str(BEGAN + number * WINDOW), bid["price"]


flow = Dataflow("q7")
bids = op.map("bids", lines_in_order("lines", flow, "bids_in_one"), together)
windows = windowing.TumblingWindower(milliseconds(WINDOW), ALIGNED)
highest = windowing.max_window("highest", bids, clock, windows, by=lambda bid: bid["price"])
written("answers", op.map("started", highest.down, started))
