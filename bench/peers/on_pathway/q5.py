"""Nexmark's q5 with Pathway: sliding counts of each auction, joined with their maximum."""

from __future__ import annotations

import pathway as pw
from on_pathway.nexmark import Bid
from on_pathway.places import read, run

bids = read(Bid, "bids")
counts = bids.windowby(
    pw.this.ts,
    window=pw.temporal.sliding(hop=2_000, duration=10_000),
    instance=pw.this.auction,
    behavior=pw.temporal.exactly_once_behavior(),
).reduce(auction=pw.this._pw_instance, start=pw.this._pw_window_start, count=pw.reducers.count())
most = counts.groupby(pw.this.start).reduce(pw.this.start, most=pw.reducers.max(pw.this.count))
hot = counts.join(most, pw.left.start == pw.right.start, pw.left.count == pw.right.most).select(
    key=pw.left.start, value=pw.left.count, auction=pw.left.auction
)
run(hot, bids.reduce(total=pw.reducers.count()), windows=True)
