"""A real server of a store, over loopback, in a process of its own.

with served(store) as url: ...                    # http://127.0.0.1:PORT
with served(store, token="x" * 16, rate=10.0) as url: ...
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import httpx
from progress_counts import set_fields
from server.forked_server import ForkedServer

from millstream.codec import encode_value, shard_of
from millstream.server.options import ServerOptions
from millstream.stores.contract import Fence
from millstream.stores.home import Home
from millstream.stores.layout import pack_slate, slates_of, table_of
from millstream.stores.progress import Latency, Progress

T = TypeVar("T")
SHARDS = 4
# No certificates are needed, and to load them takes longer than a request.
get = partial(httpx.get, verify=False)


@contextmanager
def served(store: Path, **options: Any) -> Iterator[str]:
    """The address of a server of this store, on a free port, for as long as this lasts.

    It is killed in the end, which takes no time: how a server stops has tests of its own.
    """
    server = ForkedServer(ServerOptions(store, port=0, **options))
    try:
        yield server.url
    finally:
        server.kill()


@contextmanager
def asked(store: Path, **options: Any) -> Iterator[httpx.Client]:
    """A client of such a server, which has its token if it needs one."""
    token = options.get("token")
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    with (
        served(store, **options) as url,
        httpx.Client(base_url=url, headers=headers, verify=False) as client,
    ):
        yield client


def until(found: Callable[[], T], seconds: float = 10.0) -> T:
    """Waits until the result of `found` is true, and returns it. Fails if it never is."""
    deadline = time.monotonic() + seconds
    while not (value := found()):
        assert time.monotonic() < deadline, f"not within {seconds} seconds"
        time.sleep(0.005)
    return value


class MadeStore:
    """A store whose batches a test commits itself, without Spark.

    made = MadeStore(tmp_path / "store", {"count": "dict"})
    made.commit({"count": {"Walmart": {"count": 1}}})        # batch 0
    made.commit({"count": {"Walmart": None}}, late=3)         # batch 1: deleted; other fields
    """

    def __init__(self, path: Path, updates: dict[str, str], app: str = "retail") -> None:
        self.path = path
        self.home = Home.make(path, app, SHARDS, updates)
        self.home.know_slates(updates, {}, {}, ())
        self.progress = Progress()
        self.epoch = self.home.raise_epoch()

    def commit(self, slates: dict[str, dict[str, Any]] | None = None, /, **fields: Any) -> int:
        """Commit a batch: by update and key, a slate (of a table, its entries), None to delete.

        `fields` are set on the progress; the wall time of the commit is now unless `written` says.
        """
        self.write(slates or {})
        self.progress.batch += 1
        self.progress.written = time.time_ns() // 1_000
        if (latency := fields.pop("latency", None)) is not None:
            self.progress.measured = Latency(self.progress.batch, latency, 0)
        set_fields(self.progress, **fields)
        self.home.write_progress(self.progress)
        return self.progress.batch

    def write(self, slates: dict[str, dict[str, Any]]) -> None:
        """Only the rows of the next batch, as a driver does that dies before it commits."""
        batch = self.progress.batch + 1
        changes: list[dict[str, dict[bytes, bytes | None]]] = [{} for _ in range(SHARDS)]
        for update, by_key in slates.items():
            for key, slate in by_key.items():
                shard = changes[shard_of(update, key, SHARDS)].setdefault(update, {})
                shard.update(self._rows(update, key, slate, batch))
        store = self.home.store()
        for number, changed in enumerate(changes):
            store.shard(number).commit(Fence(self.epoch, batch, 0), changed)
        store.close()

    def _rows(self, update: str, key: str, slate: Any, ts: int) -> dict[bytes, bytes | None]:
        row = slates_of(update) + key.encode()
        if slate is None:
            return {row: None}
        if self.home.facts.updates[update] != "table":
            return {row: pack_slate(ts, encode_value(slate), {})}
        entries = {
            table_of(update, key) + entry.encode(): encode_value(value)
            for entry, value in slate.items()
        }
        return {row: pack_slate(ts, b"", {}), **entries}
