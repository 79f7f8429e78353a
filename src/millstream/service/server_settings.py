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
        store=settings.storage.store.absolute(),
        host=settings.server.host,
        port=settings.server.port,
        token=token_of(settings.server.token_file, environ),
        token_file=settings.server.token_file,
        tokens=settings.server.tokens,
        trusted_proxies=settings.server.trusted_proxies,
        access_log=settings.server.access_log,
        tls_cert=settings.server.tls_cert,
        tls_key=settings.server.tls_key,
        hosts=settings.server.hosts,
        max_body=settings.server.max_body,
        rate=settings.server.rate,
        connections=settings.server.connections,
        fan_out=settings.server.fan_out,
        backlog_bytes=settings.logs.backlog_bytes,
        place=settings.storage.place,
        cache=settings.storage.cache,
        retention=Retention(settings.logs.retain_age, settings.logs.retain_bytes),
    )
    check(options)
    return options


def token_of(file: Path | None, environ: Mapping[str, str] = os.environ) -> str | None:
    """Returns the secret from its file, or else from MILLSTREAM_TOKEN."""
    if file is None:
        return environ.get("MILLSTREAM_TOKEN") or None
    return read_token(file)
