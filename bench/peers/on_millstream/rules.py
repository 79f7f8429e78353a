"""ShuffleBench's shape with Millstream: a map finds the rules, an update is their consumers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from matching import Rules
from on_millstream.running import run_all

import millstream as ms

app = ms.App("rules")
app.source("records", key="key", ts="ts", unit="us")
rules = Rules()


@app.map("records", publishes="matched")
def match(event: ms.Event) -> Iterator[Any]:
    for rule in rules.matching(event.value["number"]):
        yield ms.emit(key=rule)


@app.update("matched")
def answer(event: ms.Event, slate: dict[str, Any]) -> None:
    count, total = slate.get("value", (0, 0))
    slate["value"] = [count + 1, total + event.value["number"]]


if __name__ == "__main__":
    run_all(app, {"records": ""})
