"""A server for `make test-schema`. Prints its address, and serves until its stdin ends.

shop: slates, records and a dead letter
town: feeds
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from msgspec import structs
from server.forked_server import ForkedServer
from shop_store import stocked
from town_store import town

from millstream.description import SourceDescription, read_description, write_description
from millstream.server.options import ServerOptions


def take_anything(store: Path) -> None:
    """Give the store a source whose events need no field: what the document allows, it takes."""
    description = read_description(store)
    assert description is not None
    (visits,) = description.sources
    sources = [SourceDescription("visits", None, None, None, False, visits.address)]
    write_description(store, structs.replace(description, sources=sources))


def shop(store: Path) -> None:
    stocked(store)
    take_anything(store)


if __name__ == "__main__":
    (application,) = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "store"
        {"shop": shop, "town": town}[application](store)
        # Event streams end by themselves: whoever checks an answer reads the whole of it.
        server = ForkedServer(ServerOptions(store, port=0, stream_seconds=0.02))
        try:
            print(server.url, flush=True)
            sys.stdin.read()
        finally:
            server.kill()
