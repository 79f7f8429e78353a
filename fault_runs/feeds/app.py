"""Feeds in which everything happens often: small passes, short feeds, rates that forget quickly."""

from __future__ import annotations

import millstream as ms

NAME = "feeds"

app = ms.App("followed")
app.add(
    ms.feeds.Feeds(coherency="per-producer", keep=15, backfill=4, pushes=7, memory="20s"),
    name=NAME,
)
