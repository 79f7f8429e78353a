"""`python -m fault_runs.store_mirror ADDRESS FOLDER`: mirrors a shared store, to compare it.

Runs as a process of its own, on a host that can reach the place.
"""

from __future__ import annotations

import sys
from pathlib import Path

from millstream.log.logs_follower import bring_logs
from millstream.places.place_address import place_at
from millstream.stores.shared.store_mirror import StoreMirror


def main(arguments: list[str]) -> None:
    address, folder = arguments
    place = place_at(address)
    mirror = StoreMirror(place, Path(folder))
    while mirror.follow():
        pass
    mirror.close()
    streams = {piece.name.split("/")[1] for piece in place.list("logs/")}
    bring_logs(place, Path(folder) / "logs", sorted(streams))


if __name__ == "__main__":
    main(sys.argv[1:])
