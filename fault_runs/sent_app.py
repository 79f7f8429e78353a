"""An application with one slate for each event, so that lost or repeated events show."""

from __future__ import annotations

from typing import Any

import millstream as ms

app = ms.App("sent")
app.source("events", key="id")
app.output("seen")


@app.update("events", publishes="seen")
def count(event: Any, slate: Any) -> Any:
    slate["n"] = slate.get("n", 0) + 1
    yield ms.emit(value=slate["n"])
