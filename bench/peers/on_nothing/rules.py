"""ShuffleBench's shape in a plain loop, one of two, each over half of the files.

Nothing survives a crash.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from matching import Rules
from progress import Progress

process = int(os.environ["PEER_PROCESS"])
slots = Progress(f"{os.environ['PEER_PROGRESS']}-{process}").slots
rules = Rules()
states: dict[str, tuple[int, int]] = {}
for path in sorted(Path(os.environ["PEER_INPUT"]).iterdir())[process::2]:
    with path.open("rb") as file:
        for line in file:
            slots[process] += 1
            number = json.loads(line)["number"]
            for rule in rules.matching(number):
                count, total = states.get(rule, (0, 0))
                states[rule] = count + 1, total + number
with open(f"{os.environ['PEER_RESULT']}/states-{process}", "w") as result:
    result.writelines(json.dumps(item) + "\n" for item in states.items())
