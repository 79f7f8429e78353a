"""The schemas of Nexmark's streams."""

from __future__ import annotations

import pathway as pw


class Auction(pw.Schema):
    auction: str
    category: str
    ts: int
    expires: int


class Bid(pw.Schema):
    auction: str
    bidder: str
    price: int
    ts: int
