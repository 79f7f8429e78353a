"""Figure 10: producers that seldom post do so all the time, and have many followers at once.

Simulated time, a batch for each step. As many other posts and reads come in every step, so that
what differs is the flash. A pair's flip is that it is told another side than it had; the first
decision on a new follow is none.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import median
from typing import Any

import numpy as np

from bench.bench import Bench
from bench.feeds.costs import HYBRID, TRIES, WARM, Calibrated, Run, unseen_garbage
from bench.feeds.driven import NAME, Driven
from bench.feeds.laid import NOW, TEXT, Laying, Record, consumer, follows, lay, producer
from bench.feeds.network import HOUR, Network, Shape, network, stretch
from bench.feeds.plan import Flash, shards_of
from bench.imr.noise import Noise
from millstream.feeds.names import parts
from millstream.feeds.placement import PlacedFeeds
from millstream.feeds.policy.rates import SECOND

Row = dict[str, Any]
WITHIN = 0.1
"""Back is who costs no more than this above the baseline."""
SMOOTH = 6
"""The number of later steps whose median must be as low. A single disturbed step counts for
nothing."""
Pair = tuple[str, str]


@dataclass
class Sides:
    """The side of each pair, and the number of changes."""

    now: dict[Pair, str] = field(default_factory=dict)
    flips: dict[Pair, int] = field(default_factory=dict)

    def told(self, of: str, value: Record) -> None:
        pair = of, value["producer"]
        if self.now.get(pair, value["side"]) != value["side"]:
            self.flips[pair] = self.flips.get(pair, 0) + 1
        self.now[pair] = value["side"]


def run(bench: Bench, plan: Flash, known: Calibrated) -> list[Row]:
    """Measures points before and after the flash, and summarises them."""
    of = network(Shape().scaled(plan.scale).at_ratio(plan.ratio), plan.seed)
    options = Run(HYBRID, known.ratio).options
    laying = Laying(PlacedFeeds(options, NAME))
    lay(laying, of)
    sides = Sides(_sides(laying))
    path, shards = bench.fresh("feeds/flash"), shards_of(plan.scale)
    with Driven(path, options, shards) as driven, Noise() as noise:
        driven.lay(laying)
        laying.tables.clear()
        driven.on_side = sides.told
        with unseen_garbage():
            rows = _points(bench, plan, of, driven)
    bench.fresh("feeds/flash")
    rows.append({"what": "all", **summary(rows, plan.step, sides.flips), **noise.row()})
    bench.say(f"    {rows[-1]}")
    return rows


def _points(bench: Bench, plan: Flash, of: Network, driven: Driven) -> list[Row]:
    usual = round(float(of.event_rates.sum()) * plan.step / HOUR)
    looks = round(usual * plan.ratio)
    count = plan.before + plan.after
    part = stretch(of, usual * (plan.aged + count), looks * count + WARM, plan.seed + 10)
    producers, consumers = part.producer.tolist(), part.consumer.tolist()
    steps = [
        [
            _post(p, NOW + SECOND + int(step * plan.step * SECOND) + n * 1_000, f"n{step}-{n}")
            for n, p in enumerate(producers[step * usual :][:usual])
        ]
        for step in range(plan.aged + count)
    ]
    for some in steps[: plan.aged]:
        driven.run(some)
    driven.read_all([consumer(c) for c in consumers[:WARM]])
    driven.taken()
    flashing = chosen(of, plan)
    rows: list[Row] = []
    for step, some in enumerate(steps[plan.aged :]):
        begin = NOW + SECOND + int((plan.aged + step) * plan.step * SECOND)
        records = list(some)
        if step >= plan.before:
            records += flash_posts(flashing, begin, plan, step)
        if step == plan.before:
            records += follows(_new_pairs(of, flashing, plan), begin + 1)
        driven.run(sorted(records, key=lambda record: int(record["at"])))
        driven.read_all([consumer(c) for c in consumers[WARM + step * looks :][:looks]], TRIES)
        did = driven.taken()
        at = (step - plan.before) * plan.step
        rows.append(
            {
                "what": f"{at:+.0f} s",
                "at": at,
                "phase": "before" if step < plan.before else "after",
                "cpu_ms": 1e3 * (did.maintenance_s + did.query_s),
                "maintenance_ms": 1e3 * did.maintenance_s,
                "query_ms": 1e3 * did.query_s,
                "posts": did.posts,
                "pushes": did.pushes,
                "pulls": did.pulls,
                "sides": did.sides,
            }
        )
    return rows


def chosen(of: Network, plan: Flash) -> list[int]:
    """Chooses the producers of the flash: they post rarely, and have about the typical number of
    followers."""
    followers = np.bincount(of.producer, minlength=len(of.event_rates))
    seldom = of.event_rates <= np.median(of.event_rates)
    usual = np.abs(followers - followers.mean())
    order = np.lexsort((usual, ~seldom))
    count = max(1, round(plan.part * len(of.event_rates)))
    found: list[int] = order[:count].tolist()
    return found


def flash_posts(flashing: list[int], begin: int, plan: Flash, step: int) -> list[Record]:
    """Their posts of a step, each at its own moment."""
    posts = []
    times = max(1, round(plan.step / plan.every))
    for order, number in enumerate(flashing):
        for time in range(times):
            share = (time + (order % 7) / 7) / times
            at = begin + int(plan.step * SECOND * share * 0.99) + order * 3 + 2
            posts.append(_post(number, at, f"f{step}-{time}"))
    return posts


def summary(rows: list[Row], step: float, flips: dict[Pair, int]) -> Row:
    """Summarises the points. Pure."""
    before = median(row["cpu_ms"] for row in rows if row["phase"] == "before")
    after = [row for row in rows if row["phase"] == "after"]
    costs = [row["cpu_ms"] for row in after]
    limit = before * (1 + WITHIN)
    low = [
        n
        for n in range(max(1, len(costs) - SMOOTH + 1))
        if costs[n] <= limit and median(costs[n : n + SMOOTH]) <= limit
    ]
    settled = [row["cpu_ms"] for row in after if row["at"] >= 60.0]
    return {
        "before_ms": before,
        "peak_ms": max(costs),
        "settled": median(settled) / before if settled else None,
        "back_s": (low[0] if low else len(costs)) * step,
        "flips": max(flips.values(), default=0),
        "flipped": len(flips),
    }


def _post(number: int, at: int, name: str) -> Record:
    return {"kind": "post", "at": at, "producer": producer(number), "id": name, "value": TEXT}


def _new_pairs(of: Network, flashing: list[int], plan: Flash) -> list[tuple[int, int]]:
    """Consumers that begin to follow, so that each has as many followers as the plan says."""
    random = np.random.default_rng(plan.seed + 20)
    found = []
    for number in flashing:
        known = set(of.consumer[of.producer == number].tolist())
        others = [c for c in random.permutation(len(of.query_rates)).tolist() if c not in known]
        found += [(number, c) for c in others[: max(0, plan.fan_out - len(known))]]
    return found


def _sides(laying: Laying) -> dict[Pair, str]:
    found: dict[Pair, str] = {}
    for of, table in laying.tables[laying.placed.consumers].items():
        for name, value in table.changes().items():
            kind, *rest = parts(name)
            if value is not None and kind in ("push", "pull"):
                found[of, rest[0]] = kind
    return found
