"""Packages of a shared store are in its place, for the servers of all hosts."""

from __future__ import annotations

from pathlib import Path

from millstream.places.memory_place import MemoryPlace
from millstream.stores.package_files import package_path, put_package


def test_a_package_is_fetched_where_it_is_asked_for(tmp_path: Path) -> None:
    """Another host finds it by its hash. An unknown one is None."""
    place = MemoryPlace()
    for host in ("driver", "server"):
        (tmp_path / host).mkdir()
    name = put_package(tmp_path / "driver", b"code", place)
    assert package_path(tmp_path / "server", name) is None
    path = package_path(tmp_path / "server", name, place)
    assert path is not None
    assert path.read_bytes() == b"code"
    assert package_path(tmp_path / "server", "0" * 64, place) is None
    assert package_path(tmp_path / "server", "../x", place) is None
