"""Writes the counts that are in the state of Quix Streams, after it has stopped.

In its RocksDB they have the keys `"KEY"|"count"`. A partition that has moved to the other process
is in both; the further count is the right one.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from rocksdict import Rdict

stores = [path.parent for path in Path(os.environ["PEER_STATE"]).rglob("CURRENT")]
with open(f"{os.environ['PEER_RESULT']}/counts", "w") as result:
    for store in stores:
        for entry, value in Rdict(str(store)).items():
            key, _, name = bytes(entry).partition(b"|")
            if name == b'"count"':
                count = json.loads(value)
                result.write(json.dumps([json.loads(key), count, count]) + "\n")
