"""Records in topics, for tests."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from confluent_kafka import Producer

from fault_runs.kafka_server import KafkaBrokers


class Sender:
    """Sends records and waits until all are acknowledged; in transactions if it has an id."""

    def __init__(self, kafka: KafkaBrokers, transactional: str = "") -> None:
        settings: dict[str, Any] = {"bootstrap.servers": kafka.servers, "acks": "all"}
        if transactional:
            settings["transactional.id"] = transactional
        self.producer = Producer(settings)
        if transactional:
            self.producer.init_transactions()

    def send(self, topic: str, values: Iterable[Any], partition: int = 0, **more: Any) -> None:
        """Values are sent as JSON, bytes and None as they are."""
        for value in values:
            raw = value if value is None or isinstance(value, bytes) else json.dumps(value).encode()
            self.producer.produce(topic, raw, partition=partition, on_delivery=_refuse, **more)
        assert self.producer.flush(60) == 0

    def transaction(self, topic: str, values: Iterable[Any], partition: int, commit: bool) -> None:
        """Values in a transaction of their own, which ends with an abort if not with a commit."""
        self.producer.begin_transaction()
        self.send(topic, values, partition)
        if commit:
            self.producer.commit_transaction()
        else:
            self.producer.abort_transaction()


def _refuse(error: Any, message: Any) -> None:
    assert error is None, error


def address(kafka: KafkaBrokers, topic: str, **options: str) -> str:
    given = "".join(f"&{name.replace('_', '.')}={value}" for name, value in options.items())
    return f"kafka:{topic}?servers={kafka.servers}{given}"
