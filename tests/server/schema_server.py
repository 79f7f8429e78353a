"""A server for `make test-schema`: of a shop with slates, records and a dead letter. Prints its
address, and serves until its stdin ends."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from msgspec import structs
from server.forked_server import ForkedServer
from shop_store import stocked

from millstream.description import SourceDescription, read_description, write_description
from millstream.server.options import ServerOptions


def take_anything(store: Path) -> None:
    """Give the store a source whose events need no field: what the document allows, it takes."""
    description = read_description(store)
    assert description is not None
    (visits,) = description.sources
    sources = [SourceDescription("visits", None, None, None, False, visits.address)]
    write_description(store, structs.replace(description, sources=sources))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        shop = stocked(Path(folder) / "store")
        take_anything(shop.path)
        # Event streams end by themselves: whoever checks an answer reads the whole of it.
        server = ForkedServer(ServerOptions(shop.path, port=0, stream_seconds=0.02))
        try:
            print(server.url, flush=True)
            sys.stdin.read()
        finally:
            server.kill()
