"""Counts the keys with Millstream's own count, an aggregate."""

from __future__ import annotations

from on_millstream.running import run_all

import millstream as ms
from millstream import algebra

app = ms.App("count")
app.source("events", key="key", ts="ts", unit="us")
app.aggregate("events", algebra=algebra.count(), name="answer")

if __name__ == "__main__":
    run_all(app, {"events": ""})
