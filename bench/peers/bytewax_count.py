"""Counts the records of each key with Bytewax; run by `python -m bytewax.run`.

Workers read the partitions and exchange items by key, so a process says how many it has counted,
in the slot of its own number. There is no group of consumers, and so no rebalance.
"""

from __future__ import annotations

import json
import os
from typing import Any

from bytewax import operators as op
from bytewax.connectors.kafka import operators as kop
from bytewax.dataflow import Dataflow
from bytewax.outputs import DynamicSink, StatelessSinkPartition
from progress import Progress

slots = Progress(os.environ["PEER_PROGRESS"]).slots
process = int(os.environ["PEER_PROCESS"])


class NoPartition(StatelessSinkPartition[Any]):
    def write_batch(self, items: list[Any]) -> None:
        pass


class NoSink(DynamicSink[Any]):
    """A dataflow must have an output; the counts are the state."""

    def build(self, step_id: str, worker_index: int, worker_count: int) -> NoPartition:
        return NoPartition()


def keyed(message: Any) -> tuple[str, Any]:
    return message.key.decode(), json.loads(message.value)


def count(state: int | None, value: Any) -> tuple[int, list[Any]]:
    slots[process] += 1
    return (state or 0) + 1, []


flow = Dataflow("count")
records = kop.input(
    "records",
    flow,
    brokers=[os.environ["PEER_SERVERS"]],
    topics=[os.environ["PEER_TOPIC"]],
    tail=False,
)
counts = op.stateful_flat_map("count", op.map("keyed", records.oks, keyed), count)
op.output("nothing", counts, NoSink())
