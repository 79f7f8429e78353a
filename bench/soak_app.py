"""The application of the soak: two updates in a chain, an output, a ttl, and short retention."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import millstream as ms

app = ms.App("soak")
app.source("events", key="key", ts="ts", unit="us")
app.output("hundreds")
app.settings["retain_bytes"] = "8MiB"


@app.update("events", publishes="hundreds", ttl="30s")
def count(event: ms.Event, slate: dict[str, int]) -> Iterator[Any]:
    slate["count"] = slate.get("count", 0) + 1
    if slate["count"] % 100 == 0:
        yield ms.emit(value=slate["count"])


@app.update("hundreds", ttl="30s")
def last(event: ms.Event, slate: dict[str, int]) -> None:
    slate["count"] = event.value
