"""The addresses that a run's sources read from and its sinks write to, checked before it starts."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from millstream.errors import InputError
from millstream.model.function import RESERVED_STREAMS
from millstream.settings.settings import Settings
from millstream.sources.address import LOG, Address, parse_address
from millstream.stores.home import log_of


def addresses(given: dict[str, str], store: Path) -> dict[str, Address]:
    """Parses addresses by stream and makes their paths absolute.

    An address without a path is the stream's own log in the store.
    """
    parsed = {}
    for name, text in given.items():
        address = parse_address(text, name)
        if address.is_service:
            parsed[name] = address
            continue
        path = address.path or str(log_of(store, name))
        parsed[name] = replace(address, path=os.path.abspath(path))
    return parsed


def in_store(address: Address, store: Path) -> Address:
    """Returns the address in a form valid on any host: a log in the store by its relative path.

    >>> str(in_store(Address("log", "/work/logs/clicks"), Path("/work")))
    'log:logs/clicks'
    """
    path, folder = Path(address.path), store.absolute()
    if address.format == LOG and path.parent == log_of(folder, ""):
        return Address(LOG, str(path.relative_to(folder)))
    return address


def check_places(settings: Settings, outputs: Iterable[str] = ()) -> None:
    """Checks that sources can be read and do not read what the run itself writes."""
    sources = addresses(settings.addresses.sources, settings.storage.store)
    logged = {name for name, address in sources.items() if address.format == LOG}
    written = {"the store": settings.storage.store.absolute()}
    for name, address in addresses(settings.addresses.sinks, settings.storage.store).items():
        if not address.is_service:
            written[f"sink {name!r}"] = Path(address.path)
    for name in {*outputs, *RESERVED_STREAMS} - logged:
        written[f"the output {name!r}"] = log_of(settings.storage.store, name)
    for name, address in sources.items():
        path = Path(address.path)
        if address.is_service:
            continue
        if address.format == LOG:
            _check_log(name, path, written)
        else:
            _check_directory(name, path, written)


def _check_log(name: str, path: Path, written: dict[str, Path]) -> None:
    if path.exists() and not path.is_dir():
        raise InputError(f"source {name!r}: the log {path} must be a directory; it is a file")
    for writer, place in written.items():
        if place.resolve() == path.resolve():
            raise InputError(
                f"source {name!r}: {writer} writes to the log that the source reads, {path}; to "
                "feed events back, let the function publish the stream that it reads"
            )


def _check_directory(name: str, path: Path, written: dict[str, Path]) -> None:
    if not path.is_dir():
        problem = "it is a file:" if path.exists() else "it does not exist: make it, or"
        raise InputError(
            f"source {name!r}: {path} must be a directory; {problem} name another with "
            f"--source {name}=FORMAT:DIRECTORY"
        )
    for writer, place in written.items():
        if place.resolve().is_relative_to(path.resolve()):
            raise InputError(
                f"source {name!r}: {writer}, {place}, must not lie in the source's directory "
                f"{path}: what is written there would be read as events; name another place"
            )
