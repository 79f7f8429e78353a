"""What a server is told when it starts. Checked once, before it binds."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass, field
from pathlib import Path

from millstream.errors import DefinitionError
from millstream.log.retention import Retention

MIB = 1 << 20
PORT = 8470
SHORTEST_TOKEN = 16
"""What can be reached from other machines is guessed at."""


@dataclass(frozen=True, slots=True)
class Options:
    """How a store is served."""

    store: Path
    host: str = "127.0.0.1"
    port: int = PORT
    """0: any that is free."""
    token: str | None = None
    tls_cert: Path | None = None
    tls_key: Path | None = None
    hosts: tuple[str, ...] = ()
    """Further names that requests may come under, each with a port or for any port."""
    max_body: int = 16 * MIB
    rate: float = 20_000.0
    """Requests a second that one address may send."""
    body_timeout: float = 30.0
    """Seconds that a client may take between two pieces of a body; four times that in all."""
    connections: int | None = None
    """How many there may be at once; None: see `descriptors`."""
    fan_out: int = 32
    """How many agents send to the root itself, if others can be their parents."""
    stall: float = 30.0
    """Seconds after which a client that takes nothing of its answer is cut off."""
    backlog_bytes: int = 4 << 30
    """How far the application may be behind a source before no more events are taken."""
    retention: Retention = field(default_factory=Retention)
    """How long the logs of sources keep what every reader has."""


def check(options: Options) -> None:
    """Refuse what would be unsafe or cannot work."""
    token = options.token
    if token is not None and not re.fullmatch("[!-~]+", token):
        raise DefinitionError(
            "server: the token must be printable ASCII without spaces: it is sent in a header; "
            "make one with: python -c 'import secrets; print(secrets.token_urlsafe())'"
        )
    if not is_loopback(options.host) and (token is None or len(token) < SHORTEST_TOKEN):
        came = "none" if token is None else f"one of {len(token)}"
        raise DefinitionError(
            f"server: host {options.host} can be reached from other machines, and then a token of "
            f"at least {SHORTEST_TOKEN} characters must guard it; got {came}: give one with "
            "--token-file or MILLSTREAM_TOKEN, and TLS with --tls-cert and --tls-key (or bind to "
            "127.0.0.1 behind a proxy that has TLS)"
        )
    if (options.tls_cert is None) != (options.tls_key is None):
        raise DefinitionError("server: TLS needs both, a certificate and its key; got one of them")
    for file in (options.tls_cert, options.tls_key):
        if file is not None and not file.is_file():
            raise DefinitionError(f"server: {file}: no such file; TLS needs a certificate and key")
    if not 0 <= options.port <= 65_535:
        raise DefinitionError(f"server: the port must be from 0 to 65535; got {options.port}")
    for name in (
        "max_body",
        "rate",
        "body_timeout",
        "stall",
        "backlog_bytes",
        "connections",
        "fan_out",
    ):
        value = getattr(options, name)
        if value is not None and not value > 0:
            raise DefinitionError(
                f"server: {name} must be above 0; got {value}: leave it out for the default"
            )


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach it.

    >>> is_loopback("localhost"), is_loopback("127.0.0.5"), is_loopback("::1")
    (True, True, True)
    >>> is_loopback("0.0.0.0"), is_loopback("example.org"), is_loopback("")
    (False, False, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
