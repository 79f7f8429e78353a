"""Nexmark's q4 with Pathway: a join, the highest bid of each auction, the average of a category."""

from __future__ import annotations

import pathway as pw
from on_pathway.nexmark import Auction, Bid
from on_pathway.places import read, run

bids, auctions = read(Bid, "bids"), read(Auction, "auctions")
valid = (
    bids.join(auctions, pw.left.auction == pw.right.auction)
    .select(
        pw.right.auction,
        pw.right.category,
        pw.left.price,
        at=pw.left.ts,
        opens=pw.right.ts,
        expires=pw.right.expires,
    )
    .filter((pw.this.at >= pw.this.opens) & (pw.this.at <= pw.this.expires))
)
highest = valid.groupby(pw.this.auction, pw.this.category).reduce(
    pw.this.category, price=pw.reducers.max(pw.this.price)
)
averages = highest.groupby(pw.this.category).reduce(
    key=pw.this.category, value=pw.reducers.avg(pw.this.price)
)
events = pw.Table.concat_reindex(bids.select(pw.this.ts), auctions.select(pw.this.ts))
run(averages, events.reduce(total=pw.reducers.count()))
