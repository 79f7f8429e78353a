"""An application that DataFrames are poured into: it remembers what it heard."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import millstream as ms
from millstream.stores.reader import SlateReader


def clicks(**source: Any) -> ms.App:
    """Remembers every value and time of a key."""
    app = ms.App("clicks")
    app.source("clicks", **(source or {"key": "user", "ts": "at"}))

    @app.update("clicks")
    def hear(event: Any, slate: Any) -> None:
        slate["heard"] = sorted([*slate.get("heard", []), [event.ts, event.value]], key=repr)

    return app


def slates(store: Path, update: str = "hear") -> dict[str, Any]:
    with SlateReader(store) as reader:
        return {slate.key: slate.value for slate in reader.scan(update)}
