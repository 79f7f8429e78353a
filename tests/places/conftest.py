"""The places that one behavioural suite runs over: memory, a directory, and a real S3 server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from fault_runs.s3_server import S3Server, s3_server
from millstream.places.directory_place import DirectoryPlace
from millstream.places.memory_place import MemoryPlace
from millstream.places.place import Place
from millstream.places.place_address import place_at

Opened = Callable[[], Place]
KINDS = [
    "memory",
    "directory",
    pytest.param("s3", marks=pytest.mark.services),
]


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """The S3 server of all tests in a process."""
    with s3_server(tmp_path_factory.mktemp("s3") / "data") as running:
        yield running


@pytest.fixture
def s3(server: S3Server, monkeypatch: pytest.MonkeyPatch) -> S3Server:
    """The server, named in the environment."""
    for name, value in server.environ.items():
        monkeypatch.setenv(name, value)
    return server


@pytest.fixture(params=KINDS)
def opened(request: Any, tmp_path: Path) -> Opened:
    """Opens one place, empty at first; a second call gives another client of the same place."""
    if request.param == "memory":
        memory = MemoryPlace()
        return lambda: memory
    if request.param == "directory":
        return lambda: DirectoryPlace(tmp_path / "place")
    address = request.getfixturevalue("s3").address(uuid4().hex)
    return lambda: place_at(address)


@pytest.fixture
def place(opened: Opened) -> Place:
    """A place, empty at first."""
    return opened()
