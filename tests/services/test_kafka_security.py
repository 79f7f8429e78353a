"""Topics of brokers that ask who a client is: SASL over TLS, and certificates.

The settings of an address must reach every client: those that watch a topic, read it, publish to it
and take `POST` into it. What is secret must be in nothing that is kept or shown.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from client.live_server import LiveServer
from server.served import until
from services.topics import Sender

import millstream as ms
from fault_runs.committed_records import committed_records
from fault_runs.kafka_server import KafkaBrokers, KafkaSecurity, kafka_brokers
from millstream.description import Description, SourceDescription, write_description
from millstream.driver.in_process import run as run_in_process
from millstream.errors import SinkError
from millstream.settings.settings import Settings
from millstream.stores.reader import SlateReader

pytestmark = pytest.mark.services
SCRAM_USER, SCRAM_PASSWORD = "ann", "scram-secret-of-ann"
WAYS = ["PLAIN", "SCRAM-SHA-512", "certificate"]


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBrokers]:
    folder = tmp_path_factory.mktemp("kafka") / "brokers"
    with kafka_brokers(folder, secure=True) as brokers:
        brokers.add_scram_user(SCRAM_USER, SCRAM_PASSWORD)
        yield brokers


def security_of(brokers: KafkaBrokers) -> KafkaSecurity:
    assert brokers.security is not None
    return brokers.security


def options(brokers: KafkaBrokers, way: str, secrets: Path) -> str:
    """The options of an address, whose secret is in a file."""
    given = security_of(brokers)
    authority = f"client.ssl.ca.location={given.certificates}/ca.pem"
    if way == "certificate":
        return "&".join(
            [
                f"servers={given.tls_servers}",
                "client.security.protocol=SSL",
                authority,
                f"client.ssl.certificate.location={given.certificates}/client.pem",
                f"client.ssl.key.pem=file:{given.certificates}/client.key",
            ]
        )
    plain = way == "PLAIN"
    secrets.mkdir(exist_ok=True)
    (secrets / "password").write_text(f"{given.password if plain else SCRAM_PASSWORD}\n")
    return "&".join(
        [
            f"servers={given.sasl_servers}",
            "client.security.protocol=SASL_SSL",
            authority,
            f"client.sasl.mechanism={way}",
            f"client.sasl.username={given.user if plain else SCRAM_USER}",
            f"client.sasl.password=file:{secrets}/password",
        ]
    )


def secrets_of(brokers: KafkaBrokers) -> list[bytes]:
    """Returns the texts that nobody may see: passwords, and a line of the client's key."""
    given = security_of(brokers)
    key = (given.certificates / "client.key").read_bytes().splitlines()[1]
    return [given.password.encode(), SCRAM_PASSWORD.encode(), key]


def assert_hidden(brokers: KafkaBrokers, shown: bytes) -> None:
    for secret in secrets_of(brokers):
        assert secret not in shown


def application() -> ms.App:
    app = ms.App("counting")
    app.source("words", key="word")
    app.output("seen")
    app.changes("count")

    @app.update("words", publishes="seen")
    def count(event: Any, slate: Any) -> Any:
        slate["count"] = slate.get("count", 0) + 1
        yield ms.emit(value=slate["count"])

    return app


def given_settings(folder: Path, words: str, seen: str, changes: str) -> Settings:
    sinks = {"seen": seen, "count.changes": changes}
    where = folder / "store"
    return Settings.of(
        "counting", where, {"words": words}, sinks, shards=2, available_now=True, check_store=False
    )


def counts(folder: Path) -> dict[str, int]:
    with SlateReader(folder / "store") as reader:
        return {slate.key: slate.value["count"] for slate in reader.scan("count")}


def words(*texts: str) -> list[dict[str, str]]:
    return [{"word": text} for text in texts]


@pytest.mark.parametrize("way", WAYS)
def test_from_topic_to_topic(secure: KafkaBrokers, tmp_path: Path, way: str) -> None:
    """A run gets in at both ends; the store, and all that it says, has no secret."""
    topic, seen, changes = (secure.new_topic(partitions=2) for _ in range(3))
    Sender(secure).send(topic, words("a", "b", "a"))
    at = f"?{options(secure, way, tmp_path / 'secrets')}"
    said: list[str] = []
    settings = given_settings(
        tmp_path, f"kafka:{topic}{at}", f"kafka:{seen}{at}", f"kafka:{changes}{at}"
    )
    run_in_process(application(), settings, say=said.append)
    assert counts(tmp_path) == {"a": 2, "b": 1}
    told = [
        (record.key, json.loads(record.value or b"")) for record in committed_records(secure, seen)
    ]
    assert sorted(told) == [(b"a", 1), (b"a", 2), (b"b", 1)]
    slates = {record.key: record.value for record in committed_records(secure, changes)}
    assert slates == {b"a": b'{"count":2}', b"b": b'{"count":1}'}
    kept = [path for path in (tmp_path / "store").rglob("*") if path.is_file()]
    assert kept
    assert_hidden(secure, b"".join(path.read_bytes() for path in kept) + "".join(said).encode())


def test_on_spark(secure: KafkaBrokers, tmp_path: Path, spark: Any) -> None:
    """Python workers of Spark read the secret themselves."""
    from millstream.spark.runner import run

    topic, seen, changes = (secure.new_topic() for _ in range(3))
    Sender(secure).send(topic, words("a", "b", "a"))
    at = f"?{options(secure, 'SCRAM-SHA-512', tmp_path / 'secrets')}"
    settings = given_settings(
        tmp_path, f"kafka:{topic}{at}", f"kafka:{seen}{at}", f"kafka:{changes}{at}"
    )
    run(application(), settings, context=spark)
    assert counts(tmp_path) == {"a": 2, "b": 1}
    assert len(committed_records(secure, seen)) == 3


def served(folder: Path, address: str) -> LiveServer:
    """A server whose source `words` is the topic; not started yet."""
    live = LiveServer(folder / "store")
    source = SourceDescription("words", "word", None, None, True, address)
    described = Description("counting", "content", [source], [], ["words"], [], {"nodes": []})
    write_description(folder / "store", described)
    return live


def post(live: LiveServer, **headers: str) -> httpx.Response:
    given = {"Content-Type": "application/x-ndjson", **headers}
    body = b'{"word": "a"}\n{"word": "b"}\n'
    return httpx.post(f"{live.url}/streams/words", content=body, headers=given, timeout=60)


@pytest.mark.parametrize("way", WAYS)
def test_posts(secure: KafkaBrokers, tmp_path: Path, way: str) -> None:
    """The server's producer gets in, with and without a key; so does what watches the lag. Neither
    the status, nor the metrics, nor the page shows a secret."""
    topic = secure.new_topic()
    at = options(secure, way, tmp_path / "secrets")
    with served(tmp_path, f"kafka:{topic}?{at}") as live:
        live.start()
        assert post(live).json()["accepted"] == 2
        assert post(live, **{"Idempotency-Key": "one"}).json()["repeated"] is False
        status = f"{live.url}/status"
        until(lambda: httpx.get(status).json()["sources"][0]["lag_events"] == 4)
        pages = ["/status", "/metrics", "/", "/graph", "/openapi.json"]
        shown = [httpx.get(live.url + page, follow_redirects=True) for page in pages]
        assert [page.status_code for page in shown] == [200] * len(pages)
        assert 'millstream_lag_events{source="words"} 4' in shown[1].text
        assert_hidden(secure, b"".join(page.content for page in shown))
    assert len(committed_records(secure, topic)) == 4


def first_said(folder: Path, words: str) -> str:
    """The first thing that a run from a topic says; it is stopped then."""
    app = ms.App("counting")
    app.source("words", key="word")
    said: list[str] = []
    stop = threading.Event()

    def say(sentence: str) -> None:
        said.append(sentence)
        stop.set()

    run_in_process(app, Settings.of("counting", folder, {"words": words}, {}), stop=stop, say=say)
    return said[0]


def test_a_wrong_password(secure: KafkaBrokers, tmp_path: Path) -> None:
    """Source and server say that the login failed, or refuse, and show no password."""
    topic = secure.new_topic()
    at = options(secure, "PLAIN", tmp_path / "secrets")
    (tmp_path / "secrets" / "password").write_text("a-wrong-one")
    said = first_said(tmp_path / "store", f"kafka:{topic}?{at}")
    assert "Authentication failed" in said
    assert "a-wrong-one" not in said
    with served(tmp_path / "served", f"kafka:{topic}?{at}") as live:
        live.start()
        answer = post(live, **{"Idempotency-Key": "one"})
        assert answer.status_code == 503
        assert "a-wrong-one" not in answer.text


def test_a_wrong_password_of_a_sink(
    secure: KafkaBrokers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run is refused before a batch, with the reason."""
    from millstream.kafka import batch_producer
    from millstream.kafka.batch_producer import BatchProducer
    from millstream.kafka.sink_topic import sink_topic
    from millstream.sources.address import parse_address

    monkeypatch.setattr(batch_producer, "SECONDS", 3.0)
    at = options(secure, "PLAIN", tmp_path / "secrets")
    (tmp_path / "secrets" / "password").write_text("a-wrong-one")
    address = parse_address(f"kafka:{secure.new_topic()}?{at}")
    producer = BatchProducer(sink_topic(address.path, address.options), "store", "seen")
    with pytest.raises(SinkError, match=r"[Aa]uthentication fail") as failed:
        producer.check()
    assert "a-wrong-one" not in str(failed.value)


def test_an_authority_that_is_not_known(secure: KafkaBrokers, tmp_path: Path) -> None:
    """A broker whose certificate nobody vouches for is not spoken to."""
    topic, given = secure.new_topic(), security_of(secure)
    at = f"servers={given.tls_servers}&client.security.protocol=SSL"
    assert "certificate" in first_said(tmp_path / "store", f"kafka:{topic}?{at}")
