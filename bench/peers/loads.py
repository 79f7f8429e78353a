"""The loads of the peers' benchmark: input files, how many events they have, and the answers.

Answers come from plain loops over the same files and are kept beside them. A window that the input
leaves open has no answer that all must give: some engines close it at the end of their input,
others wait for a later event. Its keys are `open`, and nobody is asked for them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import data
from bench.bench import Bench
from bench.peers import nexmark, rule_records

FILES = 8
KEYS = 100_000
EXPONENT = 1.0


@dataclass(frozen=True, slots=True)
class Load:
    """A load, and the work that is done with it."""

    name: str
    work: str
    """The script of each peer, as in on_bytewax/count.py."""
    source: Path
    events: int
    expected: dict[str, Any]
    open: frozenset[str] = frozenset()


def uniform(bench: Bench, events: int) -> Load:
    source = data.uniform(bench.data, events, KEYS, FILES)
    return Load("uniform", "count", source, events, _kept(source, "count", counted))


def zipf(bench: Bench, events: int) -> Load:
    source = data.zipf(bench.data, events, KEYS, EXPONENT, FILES)
    return Load("zipf", "count", source, events, _kept(source, "count", counted))


def rules(bench: Bench, events: int) -> Load:
    source = rule_records.made(bench.data, events, FILES)
    return Load("rules", "rules", source, events, _kept(source, "rules", rule_records.consumed))


def query(name: str) -> Callable[[Bench, int], Load]:
    """A query of Nexmark."""

    def load(bench: Bench, events: int) -> Load:
        source = nexmark.made(bench.data, events, FILES)
        kept = _kept(source, name, nexmark.ANSWERS[name])
        auctions = nexmark.auctions_of(events) if name == "q4" else 0
        open_ones = frozenset(kept["open"])
        return Load(name, name, source, events + auctions, kept["answers"], open_ones)

    return load


def counted(source: Path) -> dict[str, int]:
    """A plain count of the keys."""
    counts: dict[str, int] = {}
    for event in events_of(source):
        counts[event["key"]] = counts.get(event["key"], 0) + 1
    return counts


def events_of(source: Path) -> Iterator[Any]:
    """The events of all files of a folder, in order."""
    for path in sorted(source.iterdir()):
        with path.open("rb") as file:
            yield from map(json.loads, file)


LOADS: dict[str, Callable[[Bench, int], Load]] = {
    "uniform": uniform,
    "zipf": zipf,
    "rules": rules,
    **{name: query(name) for name in nexmark.ANSWERS},
}


def _kept(source: Path, name: str, answer: Callable[[Path], dict[str, Any]]) -> dict[str, Any]:
    """The answers, from a file beside the input; computed the first time."""
    kept = source.with_name(f"{source.name}.{name}.json")
    if not kept.exists():
        fresh = kept.with_suffix(".writing")
        fresh.write_text(json.dumps(answer(source)))
        fresh.rename(kept)
    found: dict[str, Any] = json.loads(kept.read_text())
    return found
