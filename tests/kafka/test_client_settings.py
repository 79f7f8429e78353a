"""Settings of Kafka's client library: for any client, a wrong one is an error at once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from millstream.errors import InputError
from millstream.kafka.batch_producer import BatchProducer
from millstream.kafka.client import check_client_options, client_settings
from millstream.kafka.offset_ranges import OffsetRange, fetched
from millstream.kafka.sink_topic import sink_topic
from millstream.kafka.topic import source_topic
from millstream.kafka.topic_producer import TopicProducer
from millstream.kafka.topic_watch import TopicWatch

Options = list[tuple[str, str]]
SERVERS = ("servers", "127.0.0.1:1")
MAKERS: dict[str, Callable[[Options], Any]] = {
    "watch": lambda options: TopicWatch(source_topic("t", options)).start(),
    "consumer": lambda options: list(fetched(source_topic("t", options), [OffsetRange(0, 0, 1)])),
    "server's producer": lambda options: TopicProducer(source_topic("t", options)),
    "sink": lambda options: BatchProducer(sink_topic("t", options), "store", "out").check(),
}


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize(
    ("option", "wrong"),
    [
        (("client.no.such.setting", "1"), "No such configuration property"),
        (("client.security.protocol", "TLS"), "Invalid value"),
        (("client.sasl.password", "env:MILLSTREAM_NOT_SET"), "MILLSTREAM_NOT_SET must be set"),
        (("client.ssl.key.pem", "file:/nowhere/key"), "/nowhere/key cannot be read"),
    ],
)
def test_what_the_library_refuses(maker: str, option: tuple[str, str], wrong: str) -> None:
    """An error that says which setting it is, before any broker is asked."""
    with pytest.raises(InputError, match=wrong):
        MAKERS[maker]([SERVERS, option])


@pytest.mark.parametrize(
    "setting",
    [
        "sasl.password",
        "ssl.key.password",
        "ssl.keystore.password",
        "ssl.key.pem",
        "sasl.oauthbearer.client.secret",
        "sasl.oauthbearer.config",
        "sasl.oauthbearer.assertion.private.key.passphrase",
        "sasl.oauthbearer.assertion.private.key.pem",
    ],
)
def test_secrets_are_not_written_out(setting: str, tmp_path: Path) -> None:
    """A secret in an address is refused without being shown; one in a file is read from there."""
    with pytest.raises(InputError, match="is a secret") as refused:
        check_client_options([SERVERS, (f"client.{setting}", "hush")], "source 'clicks'")
    assert "hush" not in str(refused.value)
    (tmp_path / "secret").write_text("hush\n")
    options = [SERVERS, (f"client.{setting}", f"file:{tmp_path / 'secret'}")]
    check_client_options(options, "source 'clicks'")
    assert client_settings(options, "source 'clicks'")[setting] == "hush"
