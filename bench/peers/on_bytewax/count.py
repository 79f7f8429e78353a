"""Counts the keys with Bytewax; run by `python -m bytewax.run`. A count comes out at the end."""

from __future__ import annotations

import json
import os
from typing import Any

from bytewax import operators as op
from bytewax.dataflow import Dataflow
from bytewax.operators import StatefulLogic
from on_bytewax.places import lines, slots, written

process = int(os.environ["PEER_PROCESS"])


class Count(StatefulLogic[Any, int, int]):
    def __init__(self, resumed: int | None) -> None:
        self._count = resumed or 0

    def on_item(self, value: Any) -> tuple[list[int], bool]:
        slots[process] += 1
        self._count += 1
        return [], StatefulLogic.RETAIN

    def on_eof(self) -> tuple[list[int], bool]:
        return [self._count], StatefulLogic.RETAIN

    def snapshot(self) -> int:
        return self._count


def keyed(line: str) -> tuple[str, Any]:
    event = json.loads(line)
    return event["key"], event


flow = Dataflow("count")
events = op.map("keyed", lines("lines", flow, ""), keyed)
written("counts", op.stateful("count", events, Count))
