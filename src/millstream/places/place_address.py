"""Finds the place that an address names."""

from __future__ import annotations

from pathlib import Path

from millstream.errors import PlaceError
from millstream.places.directory_place import DirectoryPlace
from millstream.places.object_storage import ObjectPlace
from millstream.places.place import Place

SHARED = "shared:"
SERVICES = ("s3://", "gs://", "az://")


def is_place(address: str | Path) -> bool:
    """True if an address names a place, and not a folder of this machine.

    >>> [is_place(address) for address in ("s3://bucket/app", "shared:/mnt/app", "store")]
    [True, True, False]
    """
    return str(address).startswith((SHARED, *SERVICES))


def place_at(address: str) -> Place:
    """The place that an address names, not opened yet; PlaceError if it names none."""
    if address.startswith(SHARED) and len(address) > len(SHARED):
        return DirectoryPlace(address.removeprefix(SHARED))
    for service in SERVICES:
        if address.startswith(service) and len(address) > len(service):
            return ObjectPlace(address)
    raise PlaceError(
        f"{address!r} is no place; it must be s3://BUCKET/PREFIX, gs://BUCKET/PREFIX, "
        "az://ACCOUNT/CONTAINER/PREFIX, or shared:DIR for a directory that all hosts see"
    )
