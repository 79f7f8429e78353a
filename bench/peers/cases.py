"""The case `peers`: Millstream and other stream processors on the same data, in one run.

For each load (`bench.peers.loads`) every contestant (`bench.peers.contestants`) runs once a round,
in processes of its own, one after the other; the next round turns their order around. The figures
of a contestant are those of its round with the middle time. Who needs a topic gets a broker for its
run alone: its processor time is not counted, and it shares the cores.

Results are written after each load. A contestant that cannot be set up has a row that says why, and
the others go on.
"""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from bench.apart import RunFailedError
from bench.bench import Bench
from bench.experiments import Evaluation, Experiment
from bench.figures import Outcome
from bench.kafka import fill
from bench.latency import RATE
from bench.machine import commit, machine
from bench.peers.contestants import CONTESTANTS, Contestant, Run
from bench.peers.judging import JUDGING
from bench.peers.live import measured
from bench.peers.loads import LOADS, Load
from bench.peers.progress import PARTITIONS
from bench.peers.racing import python_of, raced
from bench.results import record, write
from fault_runs.kafka_server import kafka_brokers

SLOW_SECONDS = 100.0
"""A contestant that takes longer, or has failed, runs in the first round only."""

FAILURES = (RunFailedError, OSError, RuntimeError, subprocess.SubprocessError)
"""What one contestant may fail with, or its broker, while the others go on."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The size of one load's part."""

    events: int
    rounds: int = 3
    most_seconds: float = 600.0
    """The longest that a contestant may take."""


PLANS = {
    **dict.fromkeys(("uniform", "zipf"), Plan(4_000_000, rounds=2, most_seconds=240.0)),
    "rules": Plan(400_000, rounds=2, most_seconds=240.0),
    **dict.fromkeys(("q4", "q5", "q7", "q11"), Plan(1_000_000, rounds=1)),
    "live": Plan(40 * RATE, rounds=1),
}
QUICK = {
    "uniform": 40_000,
    "zipf": 40_000,
    "rules": 5_000,
    **dict.fromkeys(("q4", "q5", "q7", "q11"), 50_000),
    "live": 10 * RATE,
}


def run(bench: Bench) -> Outcome:
    plans = PLANS
    if bench.quick:
        plans = {name: replace(PLANS[name], events=QUICK[name], rounds=1) for name in PLANS}
    experiments = {name: Experiment(plans[name], partial(_load, name)) for name in LOADS}
    experiments["live"] = Experiment(plans["live"], _live)
    keep = partial(_written, bench)
    return Evaluation(bench, "peers", experiments, JUDGING, each=keep).outcome()


def _written(bench: Bench, outcome: Outcome) -> None:
    date = datetime.now(UTC).isoformat()
    write(bench.results, record(outcome, machine(), commit(), date, bench.quick))


def _live(bench: Bench, plan: Plan) -> list[dict[str, Any]]:
    """The latencies, with a fifth of the time for warming up."""
    seconds = plan.events / RATE
    return measured(bench, RATE, seconds / 5, seconds * 4 / 5)


def _load(name: str, bench: Bench, plan: Plan) -> list[dict[str, Any]]:
    """The rows of the contestants that can do what a load asks for."""
    load = LOADS[name](bench, plan.events)
    asked = [one for one in CONTESTANTS if load.work in one.works]
    rounds: dict[str, list[dict[str, Any]]] = {one.name: [] for one in asked}
    for contestant in asked:
        try:
            python_of(contestant)  # makes its environment, which must not be measured
        except FAILURES as error:
            rounds[contestant.name].append(_failed(bench, contestant, error))
    for number in range(plan.rounds):
        for contestant in asked[:: -1 if number % 2 else 1]:
            rows = rounds[contestant.name]
            if not rows or rows[0].get("whole_s", SLOW_SECONDS) < SLOW_SECONDS:
                rows.append(_raced(bench, contestant, load, plan))
    return [_middle(rows) for rows in rounds.values()]


def _raced(bench: Bench, contestant: Contestant, load: Load, plan: Plan) -> dict[str, Any]:
    try:
        return _row(bench, contestant, load, plan)
    except FAILURES as error:
        return _failed(bench, contestant, error)


def _failed(bench: Bench, contestant: Contestant, error: Exception) -> dict[str, Any]:
    bench.say(f"    {contestant.shown}: FAILED: {error}")
    failed = " ".join(str(error).split())[-400:]
    return {"what": contestant.shown, "name": contestant.name, "failed": failed}


def _row(bench: Bench, contestant: Contestant, load: Load, plan: Plan) -> dict[str, Any]:
    folder = bench.fresh(f"peers/{contestant.name}")
    if contestant.broker:
        with kafka_brokers(bench.fresh("peers/kafka"), heap="512m") as brokers:
            topic = brokers.new_topic(partitions=PARTITIONS)
            fill(brokers, topic, load.source)
            reading = Run(folder, load, brokers.servers, topic)
            row = raced(contestant, reading, plan.most_seconds)
    else:
        row = raced(contestant, Run(folder, load), plan.most_seconds)
    if "failed" in row:
        bench.say(f"    {contestant.shown}: FAILED: {row['failed']}")
        return row
    shutil.rmtree(folder)
    warm = row["events_per_s"]
    rate = f"{warm:,.0f} events/s warm" if warm else "too little for a warm rate"
    bench.say(f"    {contestant.shown}: {row['whole_s']:.1f} s whole, {rate}")
    return row


def _middle(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Returns the row with the median time, or a failed row if there is one."""
    failed = [row for row in rows if "failed" in row]
    return failed[0] if failed else sorted(rows, key=lambda row: row["whole_s"])[len(rows) // 2]
