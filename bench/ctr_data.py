"""A day of search traffic for the CTR stress test, with its true rates: made once and kept.

A folder holds the records of each source as JSON lines, in the order of their times, and `order`, a
byte for each record of both that says whose it is: so a sender can take any number of records on
from where it is, as they came. `truth.json` holds what examples/ctr.py must have put out at the
end of each slot.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from examples.ctr_traffic import Arrival, Traffic, traffic
from examples.ctr_truth import Counts, true_rates
from millstream.elements.keying import split_key

SOURCES = ("serves", "clicks")
"""In `order`, a byte is a place in here."""
EVENTS_A_QUERY = 1_500
VERSION = 1
"""To be raised when the traffic of the same arguments has become another."""
Windows = dict[tuple[int, str, str], Counts]
"""By the end of the window, the query and the ad: impressions and clicks."""


def described(events: int) -> Traffic:
    """Traffic of 26 hours, whatever the number of events: fewer have fewer queries and users."""
    return Traffic(events, queries=max(10, events // EVENTS_A_QUERY))


def made(work: Path, events: int) -> Path:
    """The folder with so many events."""
    folder = work / f"ctr-{VERSION}-{events}"
    if not folder.exists():
        fresh = folder.with_suffix(".tmp")
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(parents=True)
        _write(fresh, described(events))
        fresh.replace(folder)
    return folder


def _write(folder: Path, given: Traffic) -> None:
    with ExitStack() as stack:
        files = {name: stack.enter_context(open(folder / name, "w")) for name in SOURCES}
        order = stack.enter_context(open(folder / "order", "wb"))

        def through(arrivals: Iterator[Arrival]) -> Iterator[Arrival]:
            for source, record in arrivals:
                files[source].write(json.dumps(record, separators=(",", ":")) + "\n")
                order.write(bytes([SOURCES.index(source)]))
                yield source, record

        rows = [
            [*window, *counts] for window, counts in true_rates(through(traffic(given))).items()
        ]
    (folder / "truth.json").write_text(json.dumps(rows))


def truth_of(folder: Path) -> Windows:
    """What must be put out."""
    rows = json.loads((folder / "truth.json").read_text())
    return {(until, query, ad): (shown, clicks) for until, query, ad, shown, clicks in rows}


def published(folder: Path) -> Windows:
    """What a JSON sink of the output `ctr` has; a window that is there twice is an error."""
    found: Windows = {}
    for path in sorted(folder.rglob("*.jsonl")):
        for line in path.read_text().splitlines():
            value = json.loads(line)["value"]
            window, counts = _window(value), (value["impressions"], value["clicks"])
            if window in found:
                raise ValueError(f"{path}: window {window} was put out twice")
            if counts != (0, 0):
                found[window] = counts
    return found


def _window(value: dict[str, Any]) -> tuple[int, str, str]:
    """As examples/ctr.py names it, or as the sliding element of examples/ctr.toml does; that one
    also says when a window has become empty."""
    if "until" in value:
        return value["until"], value["query"], value["ad"]
    query, ad = split_key(value["key"])
    return value["to"] // 1_000, query, ad


def at_the_end(windows: Windows) -> dict[tuple[str, str], Counts]:
    """The last that was put out of every query and ad."""
    return {(query, ad): counts for (_, query, ad), counts in sorted(windows.items())}
