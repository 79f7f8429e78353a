"""Counts the keys of a topic with Quix Streams: state in RocksDB, with a changelog topic, a commit
every second."""

from __future__ import annotations

import os
from typing import Any

from progress import Progress
from quixstreams import Application, State, message_context

number = os.environ["PEER_PROCESS"]
slots = Progress(f"{os.environ['PEER_PROGRESS']}-{number}").slots
app = Application(
    broker_address=os.environ["PEER_SERVERS"],
    consumer_group="peers",
    auto_offset_reset="earliest",
    commit_interval=1.0,
    state_dir=f"{os.environ['PEER_STATE']}/{number}",
    loglevel="WARNING",
)
records = app.topic(os.environ["PEER_TOPIC"], key_deserializer="str", value_deserializer="json")


def count(value: Any, state: State) -> None:
    state.set("count", state.get("count", 0) + 1)
    context = message_context()
    slots[context.partition] = context.offset + 1


app.dataframe(records).update(count, stateful=True)

if __name__ == "__main__":
    app.run()
