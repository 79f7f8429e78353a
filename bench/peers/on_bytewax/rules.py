"""ShuffleBench's shape with Bytewax: records go to the consumers of the rules that match them."""

from __future__ import annotations

import json
import os
from typing import Any

from bytewax import operators as op
from bytewax.dataflow import Dataflow
from bytewax.operators import StatefulLogic
from matching import Rules
from on_bytewax.places import lines, slots, written

process = int(os.environ["PEER_PROCESS"])
rules = Rules()
State = tuple[int, int]


def match(line: str) -> list[tuple[str, Any]]:
    slots[process] += 1
    record = json.loads(line)
    return [(rule, record) for rule in rules.matching(record["number"])]


class Consume(StatefulLogic[Any, State, State]):
    """Holds the count and the sum of a rule's records, which come out at the end."""

    def __init__(self, resumed: State | None) -> None:
        self._count, self._total = resumed or (0, 0)

    def on_item(self, value: Any) -> tuple[list[State], bool]:
        self._count += 1
        self._total += value["number"]
        return [], StatefulLogic.RETAIN

    def on_eof(self) -> tuple[list[State], bool]:
        return [self.snapshot()], StatefulLogic.RETAIN

    def snapshot(self) -> State:
        return self._count, self._total


flow = Dataflow("rules")
matched = op.flat_map("match", lines("lines", flow, ""), match)
written("states", op.stateful("consume", matched, Consume))
