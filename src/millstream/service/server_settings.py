"""The options of a run's HTTP server, from the run's settings."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from millstream.log.retention import Retention
from millstream.server.access.token_check import read_token
from millstream.server.options import ServerOptions, check
from millstream.settings.settings import Settings


def options_of(settings: Settings, environ: Mapping[str, str] = os.environ) -> ServerOptions:
    """Returns the options of a run's server; DefinitionError if they are not safe."""
    options = ServerOptions(
        store=settings.store.absolute(),
        host=settings.host,
        port=settings.port,
        token=token_of(settings.token_file, environ),
        token_file=settings.token_file,
        tokens=settings.tokens,
        trusted_proxies=settings.trusted_proxies,
        access_log=settings.access_log,
        tls_cert=settings.tls_cert,
        tls_key=settings.tls_key,
        hosts=settings.hosts,
        max_body=settings.max_body,
        rate=settings.rate,
        connections=settings.connections,
        fan_out=settings.fan_out,
        backlog_bytes=settings.backlog_bytes,
        place=settings.place,
        cache=settings.cache,
        retention=Retention(settings.retain_age, settings.retain_bytes),
    )
    check(options)
    return options


def token_of(file: Path | None, environ: Mapping[str, str] = os.environ) -> str | None:
    """Returns the secret from its file, or else from MILLSTREAM_TOKEN."""
    if file is None:
        return environ.get("MILLSTREAM_TOKEN") or None
    return read_token(file)
