"""Counts the records of each key with Faust: a table in RocksDB, with a changelog topic."""

from __future__ import annotations

import os
from typing import Any

import faust
from progress import PARTITIONS, Progress

slots = Progress(os.environ["PEER_PROGRESS"]).slots
app = faust.App(
    os.environ["PEER_GROUP"],
    broker=f"kafka://{os.environ['PEER_SERVERS']}",
    store="rocksdb://",
    datadir=os.environ["PEER_STATE"],
    topic_partitions=PARTITIONS,
    topic_replication_factor=1,
    consumer_auto_offset_reset="earliest",
)
records = app.topic(os.environ["PEER_TOPIC"], key_type=str, value_serializer="json")
counts = app.Table("counts", default=int, partitions=PARTITIONS)


@app.agent(records)
async def count(stream: Any) -> None:
    async for event in stream.events():
        counts[event.key] += 1
        slots[event.message.partition] = event.message.offset + 1


if __name__ == "__main__":
    app.main()
