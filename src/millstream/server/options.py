"""The options of a server. They are checked once, before the server binds."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass, field
from pathlib import Path

from millstream.errors import DefinitionError
from millstream.log.retention import Retention
from millstream.server.access.client_address import networks_in
from millstream.server.access.grants import read_tokens

MIB = 1 << 20
PORT = 8470
SHORTEST_TOKEN = 16
"""Characters. Tokens of a server that other machines can reach must be hard to guess."""


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """The options of a server."""

    store: Path
    host: str = "127.0.0.1"
    port: int = PORT
    """0: any free port."""
    token: str | None = None
    token_file: Path | None = None
    """The file that the token came from, if it is to be read again when it changes."""
    tokens: Path | None = None
    """A file of tokens, with the rights of each (`grants`)."""
    trusted_proxies: tuple[str, ...] = ()
    """Addresses and networks whose X-Forwarded-For header is trusted."""
    access_log: str = ""
    """The file of the access log; `-`: stderr; empty: no access log."""
    tls_cert: Path | None = None
    tls_key: Path | None = None
    hosts: tuple[str, ...] = ()
    """Further host names that requests may use, each with a port or for any port."""
    max_body: int = 16 * MIB
    rate: float = 20_000.0
    """Requests a second that one address may send."""
    body_timeout: float = 30.0
    """Seconds that a client may take between two pieces of a body; four times that in all."""
    connections: int | None = None
    """The most connections at once; None: see `descriptors`."""
    fan_out: int = 32
    """The number of agents that send to the root itself, if others can be their parents."""
    stall: float = 30.0
    """Seconds after which a client that reads nothing of its answer is cut off."""
    stream_seconds: float | None = None
    """Seconds after which an event stream ends and its client must reconnect; None: never."""
    backlog_bytes: int = 4 << 30
    """The most bytes that may wait in a source's log before further events are refused."""
    place: str = ""
    """The address of a shared store: a mirror of it is served, and `store` is ignored."""
    cache: str = ""
    """The folder where this host keeps mirrors; empty: the default of `places.host_cache`."""
    shards: list[int] | None = None
    """The shards that a mirror has; None: all."""
    wait: bool = False
    """Wait for a shared store that does not exist yet."""
    retention: Retention = field(default_factory=Retention)
    """The retention of the logs of sources, for records that every reader has committed."""

    @property
    def guarded(self) -> bool:
        """True if requests must bring a token."""
        return self.token is not None or self.token_file is not None or self.tokens is not None


def check(options: ServerOptions) -> None:
    """Raises DefinitionError for options that would be unsafe or cannot work."""
    token = options.token
    if token is not None and not re.fullmatch("[!-~]+", token):
        raise DefinitionError(
            "server: the token must be printable ASCII without spaces: it is sent in a header; "
            "make one with: python -c 'import secrets; print(secrets.token_urlsafe())'"
        )
    if options.tokens is not None:
        read_tokens(options.tokens)
    networks_in(options.trusted_proxies)
    short = options.tokens is None if token is None else len(token) < SHORTEST_TOKEN
    if not is_loopback(options.host) and short:
        got = "none" if token is None else f"one of {len(token)}"
        raise DefinitionError(
            f"server: host {options.host} can be reached from other machines, and then a token of "
            f"at least {SHORTEST_TOKEN} characters must guard it; got {got}: give one with "
            "--token-file, --tokens or MILLSTREAM_TOKEN, and TLS with --tls-cert and --tls-key (or "
            "bind to 127.0.0.1 behind a proxy that has TLS)"
        )
    if (options.tls_cert is None) != (options.tls_key is None):
        raise DefinitionError("server: TLS needs both a certificate and its key; got one of them")
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


def warnings(options: ServerOptions) -> list[str]:
    """Returns a sentence for each option that is allowed but should be changed."""
    sentences = []
    if options.guarded and options.tls_cert is None and not is_loopback(options.host):
        sentences.append(
            f"tokens and all else can be read on the way to {options.host}: there is no TLS; give "
            "--tls-cert and --tls-key, or listen on 127.0.0.1 behind a proxy that has TLS"
        )
    for file in (options.token_file, options.tls_key):
        if file is not None and _is_public(file):
            sentences.append(f"{file} can be read by other users of this machine; chmod 600 {file}")
    if options.tokens is not None and _is_public(options.tokens, 0o022):
        sentences.append(
            f"{options.tokens} can be written by other users of this machine, who can make tokens "
            f"with it; chmod 600 {options.tokens}"
        )
    return sentences


def _is_public(file: Path, bits: int = 0o044) -> bool:
    try:
        return bool(file.stat().st_mode & bits)
    except OSError:
        return False


def is_loopback(host: str) -> bool:
    """True if only this machine can reach the host.

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
