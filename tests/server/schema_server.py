"""A server for `make test-schema`. Prints its address, and serves until its stdin ends.

shop: slates, records and a dead letter
jobs: a job over windows, with a package for its agents
payments: an action that gave up
town: feeds
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from jobs_store import JobStore, begins, data
from msgspec import structs
from payments_store import Payments
from server.forked_server import ForkedServer
from shop_store import stocked
from town_store import town

from millstream.description import SourceDescription, read_description, write_description
from millstream.server.options import ServerOptions
from millstream.stores.package_files import put_package


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


def jobs(store: Path) -> None:
    made = JobStore(store)
    made.tell(begins("web1", 0), data("web1", 0, records=12, total=12))
    package = put_package(store, b"code")
    description = read_description(store)
    assert description is not None
    published = {"version": package, "package": package}
    part = {**description.parts["errors"], "definition": published}
    write_description(store, structs.replace(description, parts={"errors": part}))


def payments(store: Path) -> None:
    made = Payments(store)
    made.action_gives_up("card 1", "card 2", error="410 Gone")
    made.fail("card 1", "card 2", error="ValueError: no amount")


APPLICATIONS: Mapping[str, Callable[[Path], Any]] = {
    "shop": shop,
    "jobs": jobs,
    "payments": payments,
    "town": town,
}


if __name__ == "__main__":
    (application,) = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "store"
        APPLICATIONS[application](store)
        # Event streams end by themselves: whoever checks an answer reads the whole of it.
        server = ForkedServer(ServerOptions(store, port=0, stream_seconds=0.02))
        try:
            print(server.url, flush=True)
            sys.stdin.read()
        finally:
            server.kill()
