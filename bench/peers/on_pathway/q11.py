"""Nexmark's q11 with Pathway: session windows of each bidder."""

from __future__ import annotations

import pathway as pw
from on_pathway.nexmark import Bid
from on_pathway.places import read, run

bids = read(Bid, "bids")
sessions = bids.windowby(
    pw.this.ts, window=pw.temporal.session(max_gap=10_000), instance=pw.this.bidder
).reduce(
    key=pw.this._pw_instance + " " + pw.cast(str, pw.this._pw_window_start),
    value=pw.reducers.count(),
)
run(sessions, bids.reduce(total=pw.reducers.count()))
