"""The shard contract and its backends.

`contract` is what the engine knows; `memory` is for tests, `lmdb` the embedded default.
"""

from millstream.stores.contract import Changes, Fence, Shard, Store, View, after_prefix
from millstream.stores.lmdb import LmdbStore
from millstream.stores.memory import MemoryStore

__all__ = [
    "Changes",
    "Fence",
    "LmdbStore",
    "MemoryStore",
    "Shard",
    "Store",
    "View",
    "after_prefix",
]
