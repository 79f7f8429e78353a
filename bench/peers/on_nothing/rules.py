"""ShuffleBench's shape in a plain loop on one core: nothing that survives a crash."""

from __future__ import annotations

import json
import os
from pathlib import Path

from matching import Rules
from progress import Progress

slots = Progress(f"{os.environ['PEER_PROGRESS']}-0").slots
rules = Rules()
states: dict[str, tuple[int, int]] = {}
for path in sorted(Path(os.environ["PEER_INPUT"]).iterdir()):
    with path.open("rb") as file:
        for line in file:
            slots[0] += 1
            number = json.loads(line)["number"]
            for rule in rules.matching(number):
                count, total = states.get(rule, (0, 0))
                states[rule] = count + 1, total + number
with open(f"{os.environ['PEER_RESULT']}/states", "w") as result:
    result.writelines(json.dumps(item) + "\n" for item in states.items())
