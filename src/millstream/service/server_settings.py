"""The options of a run's HTTP server, from the run's settings."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from millstream.log.retention import Retention
from millstream.server.access.token_check import read_token
from millstream.server.options import ServerOptions, check
from millstream.settings.settings import Settings


def options_of(settings: Settings, environ: Mapping[str, str] = os.environ) -> ServerOptions:
    """Returns the options of a run's server; DefinitionError if they are not safe."""
    options = ServerOptions(
        store=settings.storage.store.absolute(),
        token=token_of(settings.server.token_file, environ),
        backlog_bytes=settings.logs.backlog_bytes,
        place=settings.storage.place,
        cache=settings.storage.cache,
        retention=Retention(settings.logs.retain_age, settings.logs.retain_bytes),
        **asdict(settings.server),
    )
    check(options)
    return options


def token_of(file: Path | None, environ: Mapping[str, str] = os.environ) -> str | None:
    """Returns the secret from its file, or else from MILLSTREAM_TOKEN."""
    if file is None:
        return environ.get("MILLSTREAM_TOKEN") or None
    return read_token(file)
