"""Nexmark's q11 with Millstream: the standard element for sessions, its output in files."""

from __future__ import annotations

import os

from on_millstream.running import run_all

import millstream as ms

app = ms.App("q11", order="event-time")
app.source("bids", key="bidder", ts="ts", unit="ms")
app.add(ms.elements.Sessionise(gap="9999ms"), keys="bids", name="sessions", publishes="over")
app.output("over")

if __name__ == "__main__":
    run_all(app, {"bids": "bids"}, {"over": f"json:{os.environ['PEER_RESULT']}"})
