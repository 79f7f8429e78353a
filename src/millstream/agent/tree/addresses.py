"""Finds the address at which others reach a parent, if `--advertise` does not say it."""

from __future__ import annotations

import socket
from urllib.parse import urlsplit

from millstream.errors import CommandError

ANYWHERE = ("0.0.0.0", "::")


def advertised(place: tuple[str, int], secure: bool, root: str) -> str:
    """Returns the URL of a server that listens at `place`.

    If it listens on all addresses, the URL has the address from which this machine reaches the
    root.

    >>> advertised(("127.0.0.1", 8480), False, "http://root:8470")
    'http://127.0.0.1:8480'
    """
    host, port = place
    if host in ANYWHERE:
        host = towards(root)
    shown = f"[{host}]" if ":" in host else host
    return f"{'https' if secure else 'http'}://{shown}:{port}"


def towards(root: str) -> str:
    """Returns the address that this machine's packets to the root come from. Sends none."""
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
