"""A place in the memory of one process, for tests."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator

from millstream.places.place import Listed


class MemoryPlace:
    """Objects in a dict."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self.address = "memory:"
        self._clock = clock
        self._lock = threading.Lock()
        self._objects: dict[str, tuple[bytes, float]] = {}

    def put(self, name: str, data: bytes) -> None:
        with self._lock:
            self._objects[name] = bytes(data), self._clock()

    def create(self, name: str, data: bytes) -> bool:
        with self._lock:
            if name in self._objects:
                return False
            self._objects[name] = bytes(data), self._clock()
            return True

    def get(self, name: str, start: int = 0, end: int | None = None) -> bytes | None:
        with self._lock:
            data, _ = self._objects.get(name, (None, 0.0))
        return None if data is None else data[start:end]

    def list(self, prefix: str, after: str = "") -> Iterator[Listed]:
        with self._lock:
            listed = sorted(
                Listed(name, len(data), modified)
                for name, (data, modified) in self._objects.items()
                if name.startswith(prefix) and name > after
            )
        return iter(listed)

    def delete(self, names: Iterable[str]) -> None:
        with self._lock:
            for name in names:
                self._objects.pop(name, None)
