"""Small applications whose slates show in which order events were fed."""

from __future__ import annotations

from typing import Any

import millstream as ms
from millstream import Event

SECOND = 1_000_000


def an_app(*sources: str, **settings: Any) -> ms.App:
    app = ms.App("reference", **settings)
    for source in sources or ("a",):
        app.source(source)
    return app


def keep(app: ms.App, *streams: str, name: str = "keep") -> None:
    """An update that keeps its input, in order."""

    def kept(event: Event, slate: dict[str, list[Any]]) -> None:
        slate.setdefault("fed", []).append([event.stream, event.ts, event.value])

    app.update(*streams, name=name)(kept)


def fed(run: ms.testing.Run, key: str = "k", name: str = "keep") -> list[Any]:
    slate = run.slate(name, key)
    return [] if slate is None else list(slate["fed"])
