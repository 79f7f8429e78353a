"""The address by which others reach a parent, if nobody has said it."""

from __future__ import annotations

import socket
from urllib.parse import urlsplit

from millstream.errors import CommandError

ANYWHERE = ("0.0.0.0", "::")


def advertised(place: tuple[str, int], secure: bool, root: str) -> str:
    """The url of what listens at a place: of one that listens everywhere, with the address that
    this machine has towards the root.

    >>> advertised(("127.0.0.1", 8480), False, "http://root:8470")
    'http://127.0.0.1:8480'
    """
    host, port = place
    if host in ANYWHERE:
        host = towards(root)
    shown = f"[{host}]" if ":" in host else host
    return f"{'https' if secure else 'http'}://{shown}:{port}"


def towards(root: str) -> str:
    """The address of this machine that its packets to a server have. None are sent."""
    parts = urlsplit(root)
    try:
        family, kind, _, _, target = socket.getaddrinfo(
            parts.hostname, parts.port or 80, type=socket.SOCK_DGRAM
        )[0]
        with socket.socket(family, kind) as probe:
            probe.connect(target)
            return str(probe.getsockname()[0])
    except OSError as error:
        raise CommandError(
            f"--serve: the address of this machine towards {root} cannot be found: "
            f"{error.strerror or error}; say how others reach it with --advertise URL"
        ) from None
