"""Sets up a Kafka client from the options of an address.

`servers` names the brokers. An option `client.NAME` is passed to the client library (librdkafka) as
NAME, so that any security setting of a cluster can be used:

    kafka:clicks?servers=a:9093&client.security.protocol=SASL_SSL&client.sasl.mechanism=PLAIN
        &client.sasl.username=millstream&client.sasl.password=env:KAFKA_PASSWORD

A value `env:NAME` is read from the environment and `file:PATH` from a file, in the process that
connects. Secrets must be given in this way, so that an address contains no secret and may be shown.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, TypeVar

from millstream.errors import InputError
from millstream.extras import needed_by

SERVERS = "servers"
CLIENT = "client."
ENV, FILE = "env:", "file:"
_SECRET = ("password", "passphrase", "secret", "key.pem", "oauthbearer.config")
_OURS = {
    *("bootstrap.servers", "metadata.broker.list", "group.id", "isolation.level", "acks"),
    *("enable.auto.commit", "enable.auto.offset.store", "enable.partition.eof"),
    *("enable.idempotence", "auto.offset.reset", "transactional.id", "request.required.acks"),
}
AWAY_SECONDS = 5.0
"""Seconds that a request to a broker may take."""
Options = Iterable[tuple[str, str]]
Client = TypeVar("Client")


def check_client_options(options: Options, where: str) -> None:
    """Raises InputError, which shows no value, if the options cannot set up a client."""
    given = dict(options)
    if not given.get(SERVERS):
        raise InputError(
            f"{where}: must name the brokers; write for example "
            "kafka:TOPIC?servers=broker-1:9092,broker-2:9092"
        )
    for name, value in given.items():
        if not name.startswith(CLIENT):
            continue
        setting = name.removeprefix(CLIENT)
        if setting in _OURS:
            raise InputError(f"{where}: {name} must be left out: Millstream sets it")
        if is_secret(setting) and not value.startswith((ENV, FILE)):
            raise InputError(
                f"{where}: {name} is a secret, and addresses are shown to everyone; write "
                f"{name}=env:VARIABLE or {name}=file:PATH, and put the secret there"
            )


def is_secret(setting: str) -> bool:
    """True if the value of a client's setting is secret.

    >>> [is_secret(name) for name in ("sasl.password", "ssl.key.password", "sasl.username")]
    [True, True, False]
    """
    return setting.endswith(_SECRET)


def client_settings(options: Options, where: str) -> dict[str, Any]:
    """The settings for a client of the library; InputError if a variable or a file is missing."""
    given = dict(options)
    settings: dict[str, Any] = {
        "bootstrap.servers": given[SERVERS],
        "client.id": "millstream",
        "socket.keepalive.enable": True,
        "reconnect.backoff.ms": 50,
        "reconnect.backoff.max.ms": 1_000,
        "logger": _Quiet(),
    }
    for name, value in given.items():
        if name.startswith(CLIENT):
            settings[name.removeprefix(CLIENT)] = _value(value, f"{where}: {name}")
    return settings


def library() -> Any:
    """The client library; MissingExtra if it is not installed."""
    with needed_by("a Kafka address"):
        import confluent_kafka
    return confluent_kafka


def made_client(
    kind: Callable[[dict[str, Any]], Client], settings: dict[str, Any], where: str
) -> Client:
    """Creates a client of the library, without a request to the brokers.

    Raises InputError if the library refuses a setting, or cannot read a file that one names.
    """
    kafka = library()
    try:
        return kind(settings)
    except kafka.KafkaException as failure:
        error = failure.args[0]
        reason = error.str() if isinstance(error, kafka.KafkaError) else str(error)
        raise InputError(
            f"{where}: the client library refuses its settings: {reason}; see the options "
            f"{CLIENT}NAME of the address"
        ) from None


def _value(value: str, where: str) -> str:
    if value.startswith(ENV):
        name = value.removeprefix(ENV)
        if name not in os.environ:
            raise InputError(f"{where}: the variable {name} must be set, and is not")
        return os.environ[name]
    if value.startswith(FILE):
        path = value.removeprefix(FILE)
        try:
            with open(path, encoding="utf-8") as file:
                return file.read().strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not text"
            raise InputError(f"{where}: the file {path} cannot be read: {reason}") from None
    return value


class _Quiet:
    """A logger that drops everything. While a broker is away, the library repeats itself on stderr
    every second; our own code reports it once."""

    def log(self, level: int, message: str, *arguments: object) -> None:
        pass

    def addFilter(self, log_filter: object) -> None:  # noqa: N802  # as a logger has it
        pass


class ConnectionErrors:
    """Remembers errors of connections, such as a failed login, which say more than the time-out of
    a call. Its `note` is a client's `error_cb`."""

    def __init__(self) -> None:
        self.reason = ""

    def note(self, error: Any) -> None:
        if error.code() != error._ALL_BROKERS_DOWN:  # follows each reason, and adds nothing
            self.reason = error.str()

    def why(self, client: Any, error: Any) -> str:
        """The reason for a failed call of the client."""
        if error.code() not in (error._TRANSPORT, error._TIMED_OUT):
            return str(error.str())
        with suppress(library().KafkaException):  # the client may be unusable by now
            client.poll(0)  # calls `note`
        reason, self.reason = self.reason, ""
        return reason or str(error.str())


class Away:
    """Tracks how long the brokers have not answered, so that this is reported once."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._since: float | None = None
        self._told = False

    def failed(self, error: str, where: str) -> str | None:
        """The message for a failure; None if it was reported already."""
        if self._since is None:
            self._since = self._monotonic()
        if self._told:
            return None
        self._told = True
        return f"{where}: the brokers do not answer ({error}); waiting for them, nothing is lost"

    def answered(self, where: str) -> str | None:
        """The message that the brokers answer again; None if no failure was reported."""
        since, self._since = self._since, None
        if not self._told or since is None:
            return None
        self._told = False
        return f"{where}: the brokers answer again, after {self._monotonic() - since:.0f} s"
