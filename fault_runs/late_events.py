"""Events out of order beyond the allowed lateness, and sources whose clocks are wrong.

Which events are late depends on how they arrived. So the reference gets all events except those in
the late log. That alone would let a run call anything late. So three things are checked: an event
in the late log must be there rightly (an earlier event of its own source was ahead of it by the
lateness), late events must be counted as late, and the amounts of all entries must be found again,
in the slates or in the late log.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random

import millstream as ms
from fault_runs.ledger import (
    STEP,
    Record,
    differing,
    encoded,
    entries,
    events_of,
    ledger,
    outcome_of,
    progress_of,
    settings_of,
    write_files,
)
from fault_runs.outcome import Outcome
from fault_runs.result import Result
from fault_runs.scenario import Context, Scenario
from millstream.codec import decode_value
from millstream.spark.runner import run

COUNT, FILES = 800, 8
LATENESS = 20 * STEP
HOUR = 3_600_000_000


def late_events(seed: int, folder: Path, context: Context) -> Result:
    """Makes one event in ten late by up to ten times the lateness, and most others by a little."""
    random, app = Random(seed), ledger("entries", lateness=LATENESS)
    given = entries(random, COUNT)
    places = {}
    for place, record in enumerate(given):
        far = random.random() < 0.1
        shift = random.uniform(1, 10) if far else random.uniform(0, 0.9)
        places[record["id"]] = place + shift * LATENESS / STEP
    given.sort(key=lambda record: places[record["id"]])
    return _outcome("late-events", seed, folder, context, random, app, {"entries": given}, "")


def clock_skew(seed: int, folder: Path, context: Context) -> Result:
    """Sets the clock of one of two sources an hour ahead, or behind, for a part of the run."""
    random, app = Random(seed), ledger("left", "right", lateness=LATENESS)
    both = entries(random, COUNT)
    given = {"left": both[::2], "right": both[1::2]}
    wrong, behind = random.choice(["left", "right"]), bool(seed % 2)
    first = random.randrange(COUNT // 8, COUNT // 4)
    until = first + random.randrange(COUNT // 16, COUNT // 8)
    for record in given[wrong][first:until]:
        record["ts"] += -HOUR if behind else HOUR
    what = f"the clock of {wrong!r} an hour {'behind' if behind else 'ahead'}, "
    return _outcome("clock-skew", seed, folder, context, random, app, given, what)


def _outcome(
    fault: str,
    seed: int,
    folder: Path,
    context: Context,
    random: Random,
    app: ms.App,
    given: Mapping[str, Sequence[Record]],
    what: str,
) -> Result:
    """Run over the records in the order given, and compare."""
    lane = random.choice(["one-task", "shuffled"])
    addresses = {}
    for name, records in given.items():
        write_files(folder / "in" / name, encoded(records), FILES)
        addresses[name] = f"json:{folder / 'in' / name}"
    run(app, settings_of(folder, addresses, lane=lane), context=context.spark)
    found = outcome_of(app, folder)
    events = [event for name, records in given.items() for event in events_of(name, records)]
    compared = differing(app, events, found)
    wrong = _wrongly_late(given, found) + _not_conserved(given, found, folder)
    note = f"{what}{len(found.late)} of {len(events)} late, {lane}"
    if not found.late and "ahead" not in what:
        return Result(fault, seed, 0, 0, note=note, failed="nothing was late: no such run")
    return Result(
        fault,
        seed,
        compared.lost + len(wrong),
        compared.doubled,
        note="; ".join(filter(None, (note, compared.note, *wrong[:3]))),
    )


def _wrongly_late(given: Mapping[str, Sequence[Record]], found: Outcome) -> list[str]:
    """The late events for which no earlier event of their source was far enough ahead."""
    ahead = {}
    for name, records in given.items():
        highest = None
        for record in records:
            ahead[name, record["id"]] = highest is not None and highest - LATENESS >= record["ts"]
            highest = record["ts"] if highest is None else max(highest, record["ts"])
    return [
        f"entry {event.value['id']} of {event.stream} is late without a reason"
        for event in found.late
        if not ahead.get((event.stream, event.value["id"]), True)
    ]


def _not_conserved(
    given: Mapping[str, Sequence[Record]], found: Outcome, folder: Path
) -> list[str]:
    """Lists missing entries and amounts, and differences from the counts."""
    progress = progress_of(folder)
    records = [record for some in given.values() for record in some]
    sums = [
        decode_value(data)["sum"]
        for (update, _), (_, data, _, _) in found.slates.items()
        if update == "balance"
    ]
    must = {
        "events": (len(records), progress.events),
        "late events": (len(found.late), progress.late),
        "waiting events": (0, progress.waiting),
        "amounts": (
            sum(record["amount"] for record in records),
            sum(sums) + sum(event.value["amount"] for event in found.late),
        ),
    }
    return [f"{what}: {has}, not {want}" for what, (want, has) in must.items() if want != has]


LATE_EVENTS = Scenario(
    "late-events",
    "those past the lateness are in the late log, counted; the rest is right",
    late_events,
)
CLOCK_SKEW = Scenario(
    "clock-skew",
    "what is not late is right; late events are counted, sums are conserved",
    clock_skew,
)
