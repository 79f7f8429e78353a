"""Finds the place that an address names."""

from __future__ import annotations

import re
from pathlib import Path

from millstream.errors import PlaceError
from millstream.places.directory_place import DirectoryPlace
from millstream.places.object_storage import ObjectPlace
from millstream.places.place import Place

SHARED = "shared:"
SERVICES = ("s3://", "gs://", "az://")
_LIKE_A_PLACE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")


def is_place(address: str | Path) -> bool:
    """True if an address names a place, and not a folder of this machine.

    PlaceError if it looks like the address of a place and is none: who writes `s3:/bucket/app` or
    `hdfs://host/app` must not get a folder of that name, which would be lost with this machine.

    >>> [is_place(address) for address in ("s3://bucket/app", "shared:/mnt/app", "store")]
    [True, True, False]
    """
    text = str(address)
    if text.startswith((SHARED, *SERVICES)):
        return True
    if _LIKE_A_PLACE.match(text):
        raise _no_place(text)
    return False


def place_at(address: str) -> Place:
    """The place that an address names, not opened yet; PlaceError if it names none."""
    if address.startswith(SHARED) and len(address) > len(SHARED):
        return DirectoryPlace(address.removeprefix(SHARED))
    for service in SERVICES:
        if address.startswith(service) and len(address) > len(service):
            return ObjectPlace(address)
    raise _no_place(address)


def _no_place(address: str) -> PlaceError:
    return PlaceError(
        f"{address!r} is no place; it must be s3://BUCKET/PREFIX, gs://BUCKET/PREFIX, "
        "az://CONTAINER/PREFIX, or shared:DIR for a directory that all hosts see"
    )
