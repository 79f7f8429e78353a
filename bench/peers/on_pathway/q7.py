"""Nexmark's q7 with Pathway: the highest price of tumbling windows, each given out once."""

from __future__ import annotations

import pathway as pw
from on_pathway.nexmark import Bid
from on_pathway.places import read, run

bids = read(Bid, "bids")
highest = bids.windowby(
    pw.this.ts,
    window=pw.temporal.tumbling(duration=10_000),
    behavior=pw.temporal.exactly_once_behavior(),
).reduce(key=pw.this._pw_window_start, value=pw.reducers.max(pw.this.price))
run(highest, bids.reduce(total=pw.reducers.count()), windows=True)
