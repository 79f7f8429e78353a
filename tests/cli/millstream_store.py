"""A real store with slates, made without Spark."""

from pathlib import Path

from millstream.codec import encode_value, shard_of
from millstream.stores.contract import Fence
from millstream.stores.home import Home
from millstream.stores.layout import pack_slate, slates_of


def make_store(path: Path, slates: dict[str, object], app: str = "retail") -> None:
    """A store of one update, `count`, with these slates."""
    home = Home.make(path, app, 4, {"count": "dict", "top": "dict"})
    store = home.store()
    rows: list[dict[bytes, bytes]] = [{} for _ in range(4)]
    for ts, (key, slate) in enumerate(slates.items()):
        shard = shard_of("count", key, 4)
        rows[shard][slates_of("count") + key.encode()] = pack_slate(ts, encode_value(slate), {})
    for number, changes in enumerate(rows):
        store.shard(number).commit(Fence(1, 0, 0), {"count": changes})
    store.close()
    home.write_progress({"batch": 0})
