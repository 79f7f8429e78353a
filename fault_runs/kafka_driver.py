"""A driver from files or Kafka to Kafka, in its own process, which kills itself at a given moment.

    python -m fault_runs.kafka_driver FOLDER SERVERS SOURCE OUT CHANGES RUNNER STRIKE NUMBER

SOURCE is an address; OUT and CHANGES are topics. RUNNER is `spark`, `in-process`, or `last`, which
processes all existing input and ends. STRIKE is one of `STRIKES`, or `never`; it happens at the
NUMBER-th batch that this process sends to OUT.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest.mock import patch

import millstream as ms
from millstream.driver.in_process import run as run_in_process
from millstream.kafka.batch_producer import COMMIT, BatchProducer, TopicRecord
from millstream.settings.settings import Settings

STRIKES = ("before-sending", "within-transaction", "before-committing", "after-committing")
NEVER = "never"
OUTPUT = "seen"
SHARDS = 3


def application() -> ms.App:
    """Numbers the records of each key: the output shows what was lost, doubled or moved."""
    app = ms.App("numbering")
    app.source("events", key="key", ts="id", unit="us")
    app.output(OUTPUT)

    @app.update("events", publishes=OUTPUT)
    def count(event: Any, slate: dict[str, Any]) -> Any:
        slate["n"] = slate.get("n", 0) + 1
        yield ms.emit(value={"id": event.value["id"], "n": slate["n"]})

    app.changes("count")
    return app


class Strike:
    """Kills this process, as `kill -9` does, at a moment while a batch is sent."""

    def __init__(self, moment: str, number: int) -> None:
        self._moment = moment
        self._left = number

    def installed(self, stack: ExitStack) -> None:
        send, produce, patiently = (
            BatchProducer.send,
            BatchProducer._produce,
            BatchProducer._patiently,
        )

        def striking_send(
            producer: BatchProducer, batch: int, records: Iterable[TopicRecord]
        ) -> None:
            self._left -= producer._name.endswith(f"-{OUTPUT}")
            self._reach("before-sending")
            send(producer, batch, records)
            self._reach("after-committing")

        def striking_produce(
            producer: BatchProducer, given: Any, batch: int, records: Any, failed: Any
        ) -> None:
            produce(producer, given, batch, self._cut(records, given.client), failed)

        def striking_patiently(
            producer: BatchProducer, client: Any, name: str, *arguments: Any
        ) -> Any:
            if name == COMMIT:
                self._reach("before-committing")
            return patiently(producer, client, name, *arguments)

        stack.enter_context(patch.object(BatchProducer, "send", striking_send))
        stack.enter_context(patch.object(BatchProducer, "_produce", striking_produce))
        stack.enter_context(patch.object(BatchProducer, "_patiently", striking_patiently))

    def _cut(self, records: Iterable[TopicRecord], producer: Any) -> Iterator[TopicRecord]:
        """Yields the records; strikes after the first, once the brokers may have it."""
        for number, record in enumerate(records):
            if number == 1 and self._is_now("within-transaction"):
                producer.flush(2.0)
                self._reach("within-transaction")
            yield record

    def _is_now(self, moment: str) -> bool:
        return moment == self._moment and self._left <= 0

    def _reach(self, moment: str) -> None:
        if self._is_now(moment):
            os.kill(os.getpid(), signal.SIGKILL)


def main(arguments: list[str]) -> None:
    folder, servers, source, out, changes, runner, moment, number = arguments
    at = f"?servers={servers}"
    settings = Settings.of(
        "numbering",
        Path(folder) / "store",
        {"events": source},
        {OUTPUT: f"kafka:{out}{at}", "count.changes": f"kafka:{changes}{at}"},
        shards=SHARDS,
        available_now=runner == "last",
        check_store=False,
        memory="512m",
    )
    with ExitStack() as stack:
        if moment != NEVER:
            Strike(moment, int(number)).installed(stack)
        if runner == "spark":
            from millstream.spark.runner import run

            run(application(), settings)
        else:
            run_in_process(application(), settings)


if __name__ == "__main__":
    main(sys.argv[1:])
