"""Measures a live application under load: its cores, its rate, and how far behind it is."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

from bench.apart import RunFailedError
from bench.figures import percentile
from bench.lean import get_json, now
from bench.spent import shares, spent, waits

PATIENCE = 60.0
SHARES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}


class Meter:
    """Measures the application and the machine since this object was created."""

    def __init__(self, url: str, parts: dict[str, int]) -> None:
        self._url, self._parts = url, parts
        self._events = get_json(url, "/status")["events"]
        self._before = spent(parts)

    def read(self) -> dict[str, Any]:
        """Cores by part, events processed a second, and how far behind the application is now."""
        after = spent(self._parts)
        status = get_json(self._url, "/status")
        seconds = after.at - self._before.at
        return {
            "seconds": seconds,
            "cores": shares(self._before, after),
            "waits": waits(self._before, after),
            "processed_per_s": (status["events"] - self._events) / seconds,
            **behind(status),
        }


def behind(status: dict[str, Any]) -> dict[str, Any]:
    """The application's backlog: how far it is behind its source."""
    source = status["sources"][0]
    return {"lag_events": source["lag_events"], "lag_s": source["lag_seconds"]}


def idle(url: str, parts: dict[str, int], seconds: float) -> dict[str, Any]:
    """Measures the machine without this process's load."""
    meter = Meter(url, parts)
    time.sleep(seconds)
    return meter.read()


def caught_up(url: str) -> float:
    """Wait until the application has processed all its input; returns the time."""
    deadline = now() + PATIENCE
    while get_json(url, "/status")["sources"][0]["lag_events"] != 0:
        if now() > deadline:
            raise RunFailedError(f"the application is behind even after {PATIENCE:.0f} seconds")
        time.sleep(0.02)
    return now()


def latencies(seconds: list[float]) -> dict[str, float]:
    """Percentiles in milliseconds."""
    found = {f"{name}_ms": 1_000 * percentile(seconds, share) for name, share in SHARES.items()}
    return {**found, "max_ms": 1_000 * max(seconds)}


def others_than_200(statuses: Counter[int]) -> dict[str, Any]:
    """The number of answers with another status; empty if there are none."""
    others = {str(status): n for status, n in statuses.items() if status != 200}
    return {"not_200": others} if others else {}
