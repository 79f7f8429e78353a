"""Finds the client's address behind proxies, for limits and the access log.

`X-Forwarded-For` is trusted only from the proxies in the server's options, since any client can
send it. Each proxy appends the address of its caller at the right end. So the client is the
rightmost address that is not a trusted proxy's.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from typing import TypeAlias

from millstream.errors import DefinitionError

Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network
FORWARDED_FOR = b"x-forwarded-for"


def networks_in(texts: Iterable[str]) -> tuple[Network, ...]:
    """Parses addresses and networks of proxies; raises DefinitionError if one is not valid.

    >>> networks_in(["10.0.0.7", "192.0.2.0/24"])
    (IPv4Network('10.0.0.7/32'), IPv4Network('192.0.2.0/24'))
    """
    networks = []
    for text in texts:
        try:
            networks.append(ipaddress.ip_network(text.strip("[]")))
        except ValueError:
            raise DefinitionError(
                f"server: a trusted proxy must be an address or a network, as in 10.0.0.7 or "
                f"10.0.0.0/8; got {text!r}"
            ) from None
    return tuple(networks)


class TrustedProxies:
    """Finds the client behind the proxies."""

    def __init__(self, networks: tuple[Network, ...]) -> None:
        self._networks = networks

    def __bool__(self) -> bool:
        return bool(self._networks)

    def trusts(self, address: str) -> bool:
        try:
            parsed = ipaddress.ip_address(address.partition("%")[0])
        except ValueError:
            return False
        mapped = getattr(parsed, "ipv4_mapped", None)
        return any((mapped or parsed) in network for network in self._networks)

    def client(self, peer: str, headers: Iterable[tuple[bytes, bytes]]) -> str:
        """Returns the client's address; the peer's own if the peer is not a trusted proxy.

        >>> proxies = TrustedProxies(networks_in(["10.0.0.0/8"]))
        >>> proxies.client("10.0.0.1", [(FORWARDED_FOR, b"1.2.3.4, 192.0.2.7, 10.0.0.2")])
        '192.0.2.7'
        >>> proxies.client("192.0.2.9", [(FORWARDED_FOR, b"1.2.3.4")])
        '192.0.2.9'
        """
        if not self._networks or not self.trusts(peer):
            return peer
        passed = b",".join(value for name, value in headers if name == FORWARDED_FOR)
        client = peer
        for part in reversed(passed.decode("latin-1").split(",")):
            address = part.strip()
            try:
                ipaddress.ip_address(address)
            except ValueError:
                break  # no trusted proxy wrote what is further left
            client = address
            if not self.trusts(address):
                break
        return client
