"""The case `peers`: Millstream and other stream processors on the same data, in one run.

For each load (`bench.peers.loads`) every contestant (`bench.peers.contestants`) runs once a round,
in processes of its own, one after the other; the next round turns their order around. The figures
of a contestant are those of its round with the middle time. Who needs a topic gets a broker for its
run alone: its processor time is not counted, and it shares the cores.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from bench.bench import Bench
from bench.experiments import Evaluation, Experiments
from bench.figures import Outcome
from bench.kafka import fill
from bench.latency import RATE
from bench.peers.contestants import CONTESTANTS, Contestant, Run
from bench.peers.judging import JUDGING
from bench.peers.live import measured
from bench.peers.loads import LOADS, Load
from bench.peers.progress import PARTITIONS
from bench.peers.racing import python_of, raced
from fault_runs.kafka_server import kafka_brokers

SLOW_SECONDS = 100.0
"""A contestant that takes longer, or has failed, runs in the first round only."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The size of one load's part."""

    events: int
    rounds: int = 3
    most_seconds: float = 600.0
    """The longest that a contestant may take."""


PLANS = {
    "uniform": Plan(4_000_000),
    "zipf": Plan(4_000_000),
    "rules": Plan(400_000),
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
    experiments: Experiments = {
        **{name: partial(_load, bench, name, plans[name]) for name in LOADS},
        "live": partial(_live, bench, plans["live"]),
    }
    return Evaluation(bench, "peers", experiments, plans, JUDGING, dict).outcome()


def _live(bench: Bench, plan: Plan) -> list[dict[str, Any]]:
    """The latencies, with a fifth of the time for warming up."""
    seconds = plan.events / RATE
    return measured(bench, RATE, seconds / 5, seconds * 4 / 5)


def _load(bench: Bench, name: str, plan: Plan) -> list[dict[str, Any]]:
    """The rows of the contestants that can do what a load asks for."""
    load = LOADS[name](bench, plan.events)
    asked = [one for one in CONTESTANTS if load.work in one.works]
    for contestant in asked:
        python_of(contestant)  # makes its environment, which must not be measured
    rounds: dict[str, list[dict[str, Any]]] = {one.name: [] for one in asked}
    for number in range(plan.rounds):
        for contestant in asked[:: -1 if number % 2 else 1]:
            rows = rounds[contestant.name]
            if not rows or rows[0].get("whole_s", SLOW_SECONDS) < SLOW_SECONDS:
                rows.append(_raced(bench, contestant, load, plan))
    return [_middle(rows) for rows in rounds.values()]


def _raced(bench: Bench, contestant: Contestant, load: Load, plan: Plan) -> dict[str, Any]:
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
    """The row with the middle time; one that failed, if any did."""
    failed = [row for row in rows if "failed" in row]
    return failed[0] if failed else sorted(rows, key=lambda row: row["whole_s"])[len(rows) // 2]
