"""A topic whose address is in a TOML file, or in the code that starts the run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer
from services.topics import Sender, address

import millstream as ms
from fault_runs.kafka_server import KafkaBrokers
from millstream.config import load
from millstream.driver.in_process import run
from millstream.errors import DefinitionError
from millstream.settings.settings import Settings, resolve

TOML = """
[app]
name = "counting"

[streams.words]
source = "{source}"
key = "word"

[updates.count]
algebra = "count"
subscribes = "words"

[changes.count]
sink = "{sink}"
"""


def from_toml(folder: Path, source: str, sink: str) -> tuple[ms.App, Settings]:
    """An application and its settings, as `millstream run app.toml` reads them."""
    (folder / "app.toml").write_text(TOML.format(source=source, sink=sink))
    target = load(str(folder / "app.toml"))
    flags = {"store": folder / "store", "available_now": True}
    return target.app, resolve(target.app, target.toml, {}, flags)


def from_code(folder: Path, source: str, sink: str) -> tuple[ms.App, Settings]:
    """The same, as `app.run(sources={...}, sinks={...})` reads them."""
    app = ms.App("counting")
    app.source("words", key="word")
    app.aggregate("words", algebra=ms.algebra.count(), name="count")
    app.changes("count")
    given: dict[str, Any] = {"store": folder / "store", "available_now": True}
    given |= {"sources": {"words": source}, "sinks": {"count.changes": sink}}
    return app, resolve(app, environ={}, code=given)


both = pytest.mark.parametrize("settings_of", [from_toml, from_code])


@pytest.mark.services
@both
def test_a_topic_is_read_and_written(kafka: KafkaBrokers, tmp_path: Path, settings_of: Any) -> None:
    """The options of the address hold: the key is the record's, and the sink has a client's
    setting."""
    words, counts = kafka.new_topic(), kafka.new_topic()
    Sender(kafka).send(words, [{"word": "x"}] * 3, key=b"a")
    source = address(kafka, words, key="record")
    app, settings = settings_of(tmp_path, source, address(kafka, counts, client_linger_ms="1"))
    assert settings.addresses.sources == {"words": source}
    run(app, settings)
    consumer = Consumer(
        {
            "bootstrap.servers": kafka.servers,
            "group.id": f"read-{counts}",
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe([counts])
    record = consumer.poll(60)
    consumer.close()
    assert record is not None
    assert (record.key(), record.value()) == (b"a", b'{"count":3}')


@both
@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("kafka:words", "must name the brokers; write for example"),
        ("kafka:words?servers=a:1&kye=record", "unknown option 'kye' .*did you mean 'key'"),
        ("kafka:words?servers=a:1&client.sasl.password=x", "is a secret"),
    ],
)
def test_a_wrong_address_is_refused(
    tmp_path: Path, settings_of: Any, source: str, message: str
) -> None:
    """Before anything runs, with the place where it is written."""
    place = r"app\.toml" if settings_of is from_toml else r"app\.run\(sources=\)"
    with pytest.raises(DefinitionError, match=f"{place}.*{message}"):
        settings_of(tmp_path, source, "kafka:counts?servers=a:1")
