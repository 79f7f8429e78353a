"""A process that creates a row of names: ADDRESS COUNT NAME. Prints those that it created."""

from __future__ import annotations

import pickle
import sys

from millstream.places.place import Place
from millstream.places.place_address import place_at

if __name__ == "__main__":
    address, count, who = sys.argv[1:]
    place: Place = pickle.loads(pickle.dumps(place_at(address)))
    for number in range(int(count)):
        if place.create(f"commits/{number:04d}", who.encode()):
            print(f"{number:04d}")
