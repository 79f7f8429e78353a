"""The addresses of a run: where its sources read and its sinks write; checked first."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from millstream.errors import InputError
from millstream.model.function import RESERVED_STREAMS
from millstream.settings import Settings
from millstream.sources.address import LOG, Address, parse_address
from millstream.stores.home import log_of


def addresses(given: dict[str, str], store: Path) -> dict[str, Address]:
    """Addresses by stream, with whole paths; a stream's own log lies in the store."""
    found = {}
    for name, text in given.items():
        address = parse_address(text, name)
        path = address.path or str(log_of(store, name))
        found[name] = Address(address.format, os.path.abspath(path))
    return found


def check_places(settings: Settings, outputs: Iterable[str] = ()) -> None:
    """See that sources can be read and do not feed on what the run writes."""
    sources = addresses(settings.sources, settings.store)
    logged = {name for name, address in sources.items() if address.format == LOG}
    written = {"the store": settings.store.absolute()}
    for name, address in addresses(settings.sinks, settings.store).items():
        written[f"sink {name!r}"] = Path(address.path)
    for name in {*outputs, *RESERVED_STREAMS} - logged:
        written[f"the output {name!r}"] = log_of(settings.store, name)
    for name, address in sources.items():
        path = Path(address.path)
        if address.format == LOG:
            _check_log(name, path, written)
        else:
            _check_directory(name, path, written)


def _check_log(name: str, path: Path, written: dict[str, Path]) -> None:
    if path.exists() and not path.is_dir():
        raise InputError(f"source {name!r}: the log {path} must be a directory; it is a file")
    for what, place in written.items():
        if place.resolve() == path.resolve():
            raise InputError(
                f"source {name!r}: {what} writes to the log that the source reads, {path}; to feed "
                "events back, let the function publish the stream that it reads"
            )


def _check_directory(name: str, path: Path, written: dict[str, Path]) -> None:
    if not path.is_dir():
        what = "it is a file" if path.exists() else "it does not exist: make it"
        raise InputError(
            f"source {name!r}: {path} must be a directory; {what}, or name another with "
            f"--source {name}=FORMAT:DIRECTORY"
        )
    for what, place in written.items():
        if place.resolve().is_relative_to(path.resolve()):
            raise InputError(
                f"source {name!r}: {what}, {place}, must not lie in the source's directory "
                f"{path}: what is written there would be read as events; name another place"
            )
