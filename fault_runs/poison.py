"""Poison: one entry in a hundred makes a function raise, one line in a hundred is not a record."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

from fault_runs.ledger import (
    Record,
    differing,
    encoded,
    entries,
    events_of,
    ledger,
    outcome_of,
    settings_of,
    write_files,
)
from fault_runs.result import Result
from fault_runs.scenario import Context, Scenario
from millstream.spark.runner import run

COUNT, FILES = 1_000, 4


def poison(seed: int, folder: Path, context: Context) -> Result:
    """Exactly these are dead letters; the rest equals the reference."""
    random, app = Random(seed), ledger("entries")
    given = entries(random, COUNT)
    for record in random.sample(given, COUNT // 100):
        record["fails"] = random.choice(["post", "balance"])
    lines = encoded(given)
    broken = random.sample(range(COUNT), COUNT // 100)
    for number in broken:
        lines[number] = _broken(random, given[number])
    write_files(folder / "in", lines, FILES)
    size = COUNT // FILES
    refused = [("entries", f"{n // size:06d}.json", n % size + 1) for n in broken]
    lane = random.choice(["one-task", "shuffled"])
    run(
        app,
        settings_of(folder, {"entries": f"json:{folder / 'in'}"}, lane=lane),
        context=context.spark,
    )
    events = events_of("entries", (r for n, r in enumerate(given) if n not in set(broken)))
    found = differing(app, events, outcome_of(app, folder), refused)
    failing = sum("fails" in event.value for event in events)
    note = f"{failing} entries that fail, {len(broken)} lines that are no records, {lane}"
    return Result(
        "poison", seed, found.lost, found.doubled, note="; ".join(filter(None, (note, found.note)))
    )


def _broken(random: Random, record: Record) -> bytes:
    """A line that cannot become an event, broken in one of several ways."""
    line = json.dumps(record).encode()
    without_time = {name: value for name, value in record.items() if name != "ts"}
    ways = [
        line[: random.randrange(1, len(line) - 1)],
        line[:-1] + b"\xff}",
        b"not a record",
        json.dumps(without_time).encode(),
        json.dumps({**record, "ts": "yesterday"}).encode(),
        json.dumps({**record, "account": None}).encode(),
        json.dumps([record]).encode(),
    ]
    return random.choice(ways)


POISON = Scenario("poison", "dead letters, exactly those; the rest is right", poison)
