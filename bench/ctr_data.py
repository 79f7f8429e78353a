"""A day of search traffic for the CTR stress test, with its true rates: generated once and kept.

A folder has the records of each source as JSON lines, in the order of their times. It also has
`order`, with a byte for each record of both sources that tells its source: so a sender can continue
anywhere, and send any number of records in their order. `truth.json` has what examples/ctr.py must
publish at the end of each slot.
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
from millstream.elements.event_keys import split_key

SOURCES = ("serves", "clicks")
"""A byte in `order` is an index in this tuple."""
EVENTS_A_QUERY = 1_500
VERSION = 1
"""Raise this when the same arguments give other traffic."""
Windows = dict[tuple[int, str, str], Counts]
"""By the end of the window, the query and the ad: impressions and clicks."""


def described(events: int) -> Traffic:
    """Traffic of 26 hours for any number of events: fewer events have fewer queries and users."""
    return Traffic(events, queries=max(10, events // EVENTS_A_QUERY))


def made(work: Path, events: int) -> Path:
    """The folder with this many events; generates them if needed."""
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
    """The windows that must be published."""
    rows = json.loads((folder / "truth.json").read_text())
    return {(until, query, ad): (shown, clicks) for until, query, ad, shown, clicks in rows}


def published(folder: Path) -> Windows:
    """The windows in a JSON sink of the output `ctr`; a repeated window is an error."""
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
    """The window of a value of examples/ctr.py, or of the sliding element of examples/ctr.toml,
    which also reports windows that have become empty."""
    if "until" in value:
        return value["until"], value["query"], value["ad"]
    query, ad = split_key(value["key"])
    return value["to"] // 1_000, query, ad


def at_the_end(windows: Windows) -> dict[tuple[str, str], Counts]:
    """The last published window of every query and ad."""
    return {(query, ad): counts for (_, query, ad), counts in sorted(windows.items())}
