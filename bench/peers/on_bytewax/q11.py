"""Nexmark's q11 with Bytewax: a fold over session windows."""

from __future__ import annotations

from typing import Any

from bytewax import operators as op
from bytewax.dataflow import Dataflow
from bytewax.operators import windowing
from on_bytewax.places import lines_in_order, written
from on_bytewax.windows import GAP, by, clock, milliseconds

Session = tuple[int, int]
"""When it began, and how many bids it has."""
NONE: Session = (2**62, 0)


def folded(session: Session, bid: Any) -> Session:
    return min(session[0], bid["ts"]), session[1] + 1


def merged(one: Session, other: Session) -> Session:
    return min(one[0], other[0]), one[1] + other[1]


def named(item: tuple[str, tuple[int, Session]]) -> tuple[str, int]:
    bidder, (_, (began, count)) = item
    return f"{bidder} {began}", count


flow = Dataflow("q11")
bids = op.map("bids", lines_in_order("lines", flow, "bids_in_one"), by("bidder"))
windows = windowing.SessionWindower(milliseconds(GAP))
sessions = windowing.fold_window(
    "sessions", bids, clock, windows, lambda: NONE, folded, merged, ordered=False
)
written("answers", op.map("named", sessions.down, named))
