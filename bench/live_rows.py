"""Turns the results of the live benchmark's rounds into a table, figures and bars. Pure."""

from __future__ import annotations

import os
from statistics import median
from typing import Any

from bench.figures import Bar, shown

Found = dict[str, Any]
ALIKE = (
    *("per_s", "p50_ms", "p95_ms", "p99_ms", "max_ms"),
    *("server_p50_ms", "server_p99_ms", "own_p99_ms"),
    *("server_us", "per_core", "processed_per_s", "lag_events", "lag_s", "caught_up_s", "missing"),
)
"""The columns that are copied from the results, in this order."""
CORES = ("server", "load", "feeder", "driver", "jvm", "workers")
WAITS = ("server", "load")
NOTES = [
    "medians of the rounds (max_ms: the greatest), each: the rounds' own, with what others took of "
    "the machine; latencies count from when a request was due to when its answer was taken; "
    "server_*_ms: from the sending to the arrival; own_p99_ms: the rest, the load's own process",
    "server_us: CPU of the server's process a read, less what the feed costs it; per_core: reads "
    "that one core gives at that; cores_*: how many cores each part used; waits_*: the share of "
    "the time that it was ready and had none",
    "end to end: from a POST's acknowledgement to its slate being read, asked for every 2 ms",
    "calibration: million steps/s of plain Python on one core (bench/calibration.py)",
]
MAIN = {"reads, closed": "per_s", "posts": "per_s", "feed": "per_s"}
"""The figure that is shown of each round, by activity; for others the p99."""


FOLLOWED = {"readable": "end to end", "readable_event_time": "end to end, event-time"}
"""The names of the figures of single events."""


def rows(rounds: list[dict[str, Found]], rate: int) -> list[Found]:
    """Returns a row for each activity, the median of its rounds."""
    by_name: dict[str, list[Found]] = {}
    for found in rounds:
        alone = found.get("feed alone")
        for what, one in found.items():
            by_name.setdefault(what, []).append(_with_cost(one, alone))
    order = ["feed", "feed alone"]
    names = [n for n in order if n in by_name] + [n for n in by_name if n not in order]
    return [_row(what, by_name[what], rate) for what in names]


def _with_cost(found: Found, alone: Found | None) -> Found:
    """Adds the server's cost of a read, if reads were counted."""
    if "reads" not in found or alone is None:
        return found
    cores = found["cores"]["server"] - alone["cores"]["server"]
    each = cores / found["per_s"]
    return {**found, "server_us": each * 1e6, "per_core": 1 / each} if each > 0 else found


def _row(what: str, rounds: list[Found], rate: int) -> Found:
    row: Found = {"what": f"{what} ({rate:,} events/s)" if what == "feed" else what}
    for name in ALIKE:
        values = [found[name] for found in rounds if found.get(name) is not None]
        if values:
            row[name] = max(values) if name in ("max_ms", "missing") else median(values)
    used = [found["cores"] for found in rounds if "cores" in found]
    if used:
        for part in CORES:
            if part in used[0]:
                row[f"cores_{part}"] = median(cores[part] for cores in used)
        for part in WAITS:
            row[f"waits_{part}"] = median(found["waits"][part] for found in rounds)
        machine = os.cpu_count() or 1
        row["cpu_others"] = max(cores["others"] for cores in used) / machine
        row["cpu_stolen"] = max(cores["stolen"] for cores in used) / machine
    refused = [found["not_200"] for found in rounds if "not_200" in found]
    if refused:
        row["not_200"] = str(refused)
    main = MAIN.get(what, "p99_ms")
    if all(main in found for found in rounds):
        row["each"] = " ".join(shown(found[main]) for found in rounds)
    if used:
        row["each_others"] = " ".join(f"{cores['others'] / machine:.2f}" for cores in used)
    return row


def figures(table: list[Found]) -> dict[str, float]:
    """The main figures."""
    by_name = {row["what"]: row for row in table}
    closed, opened = by_name["reads, closed"], by_name["reads, open"]
    found = {
        "reads_per_s": closed["per_s"],
        "reads_per_core": closed.get("per_core", 0.0),
        "read_p50_ms": opened["p50_ms"],
        "read_p99_ms": opened["p99_ms"],
        "accepted_per_s": by_name["posts"]["per_s"],
        "caught_up_s": by_name["posts"]["caught_up_s"],
    }
    for name, what in FOLLOWED.items():
        for share in ("p50", "p99"):
            if what in by_name:
                found[f"{name}_{share}_s"] = by_name[what][f"{share}_ms"] / 1_000
    return found


def bars(found: dict[str, float]) -> list[Bar]:
    return [
        Bar("reads_per_s", found["reads_per_s"], 4_000),
        Bar("read_p99_ms", found["read_p99_ms"], 20, at_least=False),
        Bar("accepted_per_s", found["accepted_per_s"], 50_000),
        *(
            Bar(f"{name}_p99_s", found[f"{name}_p99_s"], 2.0, 0.5, at_least=False)
            for name in FOLLOWED
            if f"{name}_p99_s" in found
        ),
    ]


def told(found: Found) -> str:
    """A result in one line, for the terminal."""
    names = [name for name in ALIKE if isinstance(found.get(name), int | float)]
    return ", ".join(f"{name} {shown(found[name])}" for name in names)
