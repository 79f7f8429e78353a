"""Counts the keys of half of the files in a plain loop; the benchmark runs two at once.

It has no state on disk, and nothing survives a crash.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from progress import Progress

process = int(os.environ["PEER_PROCESS"])
slots = Progress(f"{os.environ['PEER_PROGRESS']}-{process}").slots
counts: dict[str, int] = {}
processed = 0
for path in sorted(Path(os.environ["PEER_INPUT"]).iterdir())[process::2]:
    with path.open("rb") as file:
        for line in file:
            key = json.loads(line)["key"]
            counts[key] = counts.get(key, 0) + 1
            processed += 1
            if processed & 1023 == 0:
                slots[process] = processed
slots[process] = processed
with open(f"{os.environ['PEER_RESULT']}/counts-{process}", "w") as result:
    result.writelines(json.dumps(item) + "\n" for item in counts.items())
