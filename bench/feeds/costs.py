"""The costs of policies over the same network, posts and reads: Figures 4, 5 and 9, and H and L.

Each policy has a store of its own, laid beforehand. Posts and reads come in rounds, each policy in
turn, so that what else the machine does meets all of them. Costs are CPU time:

    maintenance_us   of a post: taking it in, and pushing it
    query_us         of a read
    cpu_us           of a post and the queries that there are for it
    policy_us        what of it a policy can change: without what a post costs when nothing is
                     pushed, and a read when nothing is pulled
    model_us         what the paper's model says of that: H for each push, L for each pull
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import millstream as ms
from bench.bench import Bench
from bench.feeds.driven import NAME, Counted, Driven
from bench.feeds.laid import DEPTHS, FEW, NOW, TEXT, Laying, Record, consumer, lay, producer
from bench.feeds.network import HOUR, Network, Shape, Stretch, network, stretch
from bench.feeds.paper import THRESHOLD
from bench.feeds.plan import Diverse, FanOuts, Full, Measured, Ratios, Skews
from bench.figures import percentile
from bench.imr.noise import Noise
from millstream.feeds.placement import PlacedFeeds
from millstream.feeds.policy.costs import Calibration
from millstream.feeds.policy.rates import SECOND
from millstream.stores.progress import Progress

Row = dict[str, Any]
WARM = 100
"""Reads that are not counted."""
TOGETHER = 100
"""Reads of one policy before the next one's turn."""
TRIES = 3
"""For reads that are measured."""
KEEP = 22
"""Items that a feed keeps, at most twice as many: some more than a page. So feeds are full, as they
are after a while, and for each item that is pushed an old one goes: that is part of a push."""
ENOUGH = 1.0
"""The number of pushes of a post from which on the cost of a push is known."""
NO_TIME = 0.1
"""The least cost of a push in microseconds, whatever the load of the machine."""
PUSH, PULL, HYBRID = "push all", "push none", "hybrid"


@dataclass(frozen=True, slots=True)
class Calibrated:
    """The cost of a push and of a pull on this machine, in microseconds."""

    high: float
    low: float
    post: float
    """A post that is pushed to nobody."""
    query: float
    """A read that pulls nothing."""
    view: float = 0.0
    """The cost of a view that is reported to the application, so that it knows the consumers'
    rates."""

    @property
    def ratio(self) -> float:
        """H/L: the threshold that hybrid has."""
        return self.high / self.low


@dataclass(frozen=True, slots=True)
class Run:
    """A policy with its threshold, and the consumers that are pushed everything."""

    policy: str
    threshold: float = 1.0
    wholesale: frozenset[int] = frozenset()

    @property
    def options(self) -> ms.feeds.Feeds:
        policy: Any = {PUSH: "push", PULL: "pull", HYBRID: "hybrid"}[self.policy]
        return ms.feeds.Feeds(policy=policy, ratio=self.threshold, keep=KEEP)


def runs_of(known: Calibrated) -> dict[str, Run]:
    """The three policies that are compared."""
    return {
        PUSH: Run(PUSH),
        PULL: Run(PULL),
        HYBRID: Run(HYBRID, known.ratio),
    }


def ratios(bench: Bench, plan: Ratios, known: Calibrated) -> list[Row]:
    """Figure 4."""
    rows: list[Row] = []
    for ratio in plan.ratios:
        shape = Shape().scaled(plan.of.scale).at_ratio(ratio)
        rows += policies(bench, plan.at(ratio), shape, ratio, known, f"{ratio:g}:1")
    return rows


def full(bench: Bench, plan: Full, known: Calibrated) -> list[Row]:
    """Measures a point of Figure 4 at full size."""
    shape = Shape().scaled(plan.of.scale).at_ratio(plan.ratio)
    return policies(bench, plan.of, shape, plan.ratio, known, f"{plan.ratio:g}:1")


def diverse(bench: Bench, plan: Diverse, known: Calibrated) -> list[Row]:
    """Figure 4 again, read with per-producer coherency, where a pull costs something else."""
    own = calibrated(bench, plan.of)
    return ratios(bench, Ratios(plan.of, plan.ratios), own)


def skews(bench: Bench, plan: Skews, known: Calibrated) -> list[Row]:
    """Figure 5."""
    rows: list[Row] = []
    for factor in plan.factors:
        shape = Shape().scaled(plan.of.scale).at_ratio(plan.ratio)
        shape = replace(shape, events=shape.events * factor, queries=shape.queries * factor)
        said = f"{shape.events:.2f}, {shape.queries:.2f}"
        found = policies(bench, plan.of, shape, plan.ratio, known, said)
        rows += [
            {**row, "factor": factor, "events": shape.events, "queries": shape.queries}
            for row in found
        ]
    return rows


def fan_outs(bench: Bench, plan: FanOuts, known: Calibrated) -> list[Row]:
    """Figure 9."""
    rows: list[Row] = []
    for fan_out in plan.fan_outs:
        pairs = plan.producers * fan_out
        shape = Shape(plan.producers, plan.consumers, pairs, 0.0, 0.0, 0.0, 0.0)
        shape = shape.at_ratio(plan.ratio)
        runs = {HYBRID: Run(HYBRID, known.ratio)}
        for found in measured(bench, plan.of, network(shape, plan.of.seed), runs):
            row = costed(found, plan.ratio, known)
            rows.append({"what": f"{fan_out} followers", "fan_out": fan_out, **row})
            bench.say(f"    {rows[-1]['what']}: {row['cpu_us']:,.0f} µs a post")
    return rows


def policies(
    bench: Bench, plan: Measured, shape: Shape, ratio: float, known: Calibrated, said: str
) -> list[Row]:
    """The three policies at one point, hybrid with the H and L of its own pushes and reads."""
    of = network(shape, plan.seed)
    runs = {PULL: Run(PULL), HYBRID: Run(HYBRID, known.ratio)}
    pull, hybrid = (counted for _, counted, _ in measured(bench, plan, of, runs))
    known = replace(
        known,
        high=push_cost(pull, hybrid) or known.high,
        low=pull_cost(hybrid.looks) or known.low,
    )
    found = [costed(one, ratio, known) for one in measured(bench, plan, of, runs_of(known))]
    rows = [
        {"what": f"{said}, {row['policy']}", "ratio": ratio, "low": known.low, **row}
        for row in above(found)
    ]
    told = ", ".join(f"{row['policy']} {row['cpu_us']:,.0f}" for row in rows)
    bench.say(f"    {said}: {told} µs a post")
    return rows


def calibrated(bench: Bench, plan: Measured) -> Calibrated:
    """Measures H and L: the cost that a push adds to a hybrid post, and the marginal cost of a
    pull, also as a server estimates it."""
    shape = Shape().scaled(plan.scale).at_ratio(16)
    runs = {PUSH: Run(PUSH), PULL: Run(PULL), HYBRID: Run(HYBRID, THRESHOLD)}
    of = network(shape, plan.seed)
    push, pull, both = (counted for _, counted, _ in measured(bench, plan, of, runs))
    high = push_cost(pull, both, enough=0.0) or NO_TIME
    known = Calibrated(
        high=high,
        low=pull_cost(both.looks) or high / THRESHOLD,
        post=1e6 * pull.maintenance_s / pull.posts,
        query=1e6 * push.query_s / push.reads,
        view=_view_cost(bench, plan, of),
    )
    bench.say(f"  H {known.high:.1f} µs, L {known.low:.1f} µs: H/L {known.ratio:.2f}")
    return known


def push_cost(pull: Counted, hybrid: Counted, enough: float = ENOUGH) -> float | None:
    """Microseconds by which taking posts in rises for each push, from runs side by side that push
    nothing and some; None after so few pushes that they are not told apart from chance."""
    if not hybrid.pushes or hybrid.pushes < enough * hybrid.posts:
        return None
    seconds = hybrid.maintenance_s - pull.maintenance_s * hybrid.posts / pull.posts
    return max(NO_TIME, 1e6 * seconds / hybrid.pushes)


def pull_cost(looks: Sequence[tuple[int, int, float]]) -> float | None:
    """The marginal cost of a pull in microseconds, estimated as a server does; its upper bound if
    it is within the noise; None after so few reads that a server would go by the application's own
    ratio."""
    known = Calibration()
    for pulled, size, seconds in looks:
        known.read_took(seconds, pulled, size)
    found = known.low or known.low_at_most
    return None if found is None else 1e6 * found


def _view_cost(bench: Bench, plan: Measured, of: Network) -> float:
    """Measures the cost of a reported view that changes nothing."""
    looks = stretch(of, 1, plan.reads, plan.seed + 10).consumer.tolist()
    records = [
        {"kind": "view", "at": NOW + number, "consumer": consumer(one), "count": 1}
        for number, one in enumerate(looks)
    ]
    with laid_out(bench, plan, of, {PULL: Run(PULL)}) as laid:
        driven = laid[PULL]
        driven.run(records[:WARM])
        driven.taken()
        driven.run(records[WARM:])  # together: in use they come along with posts
        return 1e6 * driven.taken().maintenance_s / max(1, len(records) - WARM)


Found = tuple[Run, Counted, Row]
"""A policy, its results, and the load of the machine meanwhile."""


def measured(bench: Bench, plan: Measured, of: Network, runs: Mapping[str, Run]) -> list[Found]:
    """Each policy over the same posts and reads."""
    part = stretch(of, plan.posts + plan.aged, plan.reads + WARM, plan.seed + 10)
    posts, looks = posted(part), [consumer(number) for number in part.consumer.tolist()]
    with laid_out(bench, plan, of, runs) as driven:
        for one in driven.values():
            one.run(posts[: plan.aged], plan.batch)
            one.read_all(looks[:WARM])
            one.taken()
        totals = dict.fromkeys(runs, Counted())
        with Noise() as noise, unseen_garbage():
            for number in range(plan.rounds):
                for one in driven.values():
                    one.run(_share(posts[plan.aged :], number, plan.rounds), plan.batch)
                some = _share(looks[WARM:], number, plan.rounds)
                for begin in range(0, len(some), TOGETHER):
                    for one in driven.values():
                        one.read_all(some[begin : begin + TOGETHER], TRIES)
                for name, one in driven.items():
                    totals[name] = totals[name] + one.taken()
    return [(run, totals[name], noise.row()) for name, run in runs.items()]


@contextmanager
def unseen_garbage() -> Iterator[None]:
    """Freezes the objects that exist now, so that garbage collection does not add to the measured
    times."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def costed(found: Found, ratio: float, known: Calibrated) -> Row:
    """Makes the row of a policy."""
    run, counted, noise = found
    maintenance = 1e6 * counted.maintenance_s / counted.posts
    query = 1e6 * counted.query_s / counted.reads
    pushes, pulls = counted.pushes / counted.posts, counted.pulls / counted.reads
    return {
        "policy": run.policy,
        "threshold": run.threshold,
        "posts": counted.posts,
        "reads": counted.reads,
        "pushes": pushes,
        "pulls": pulls,
        "sides": counted.sides,
        "items": counted.items / counted.reads,
        "maintenance_us": maintenance,
        "query_us": query,
        "cpu_us": maintenance + ratio * query,
        "model_us": known.high * pushes + known.low * pulls * ratio,
        "mean_ms": 1e3 * sum(counted.took_s) / len(counted.took_s),
        "p95_ms": 1e3 * percentile(counted.took_s, 0.95),
        "cpu_others": noise["cpu_others"],
    }


def above(rows: list[Row]) -> list[Row]:
    """Rows of one point with what of their cost is the policy's; pure."""
    by = {row["policy"]: row for row in rows}
    if PUSH not in by or PULL not in by:
        return rows
    push, pull = by[PUSH], by[PULL]
    queries = (push["cpu_us"] - push["maintenance_us"]) / push["query_us"]
    floor = pull["maintenance_us"] + queries * push["query_us"]
    return [{**row, "policy_us": row["cpu_us"] - floor} for row in rows]


@contextmanager
def laid_out(
    bench: Bench, plan: Measured, of: Network, runs: Mapping[str, Run]
) -> Iterator[dict[str, Driven]]:
    """A network under each policy, in a store of its own. They are laid by other processes: what
    that leaves behind in memory would make the same work dearer here."""
    paths = [bench.fresh(f"feeds/{number}") for number in range(len(runs))]
    with ProcessPoolExecutor(plan.laid_at_once, get_context("fork")) as pool:
        laid = list(pool.map(partial(_laid, plan, of), runs.values(), paths))
    with ExitStack() as opened:
        driven = {
            name: opened.enter_context(_driven(plan, run, path))
            for (name, run), path in zip(runs.items(), paths, strict=True)
        }
        for one, progress in zip(driven.values(), laid, strict=True):
            one.progress = progress
        yield driven
    for number in range(len(runs)):
        bench.fresh(f"feeds/{number}")


def _laid(plan: Measured, of: Network, run: Run, path: Path) -> Progress:
    """Lay a network in a new store: how far it is then."""
    laying = Laying(PlacedFeeds(_options(plan, run), NAME))
    lay(laying, of, run.wholesale, depths=DEPTHS if plan.full else FEW)
    with _driven(plan, run, path) as driven:
        driven.lay(laying)
        return driven.progress


def _driven(plan: Measured, run: Run, path: Path) -> Driven:
    return Driven(path, _options(plan, run), plan.shards, diverse=plan.diverse)


def _options(plan: Measured, run: Run) -> ms.feeds.Feeds:
    return run.options if plan.full else replace(run.options, keep=ms.feeds.Feeds().keep)


def posted(part: Stretch, begin: int = NOW, name: str = "n") -> list[Record]:
    """The posts of a stretch as records."""
    return [
        {
            "kind": "post",
            "at": begin + int(at * HOUR * SECOND) + number,
            "producer": producer(of),
            "id": f"{name}{number}",
            "value": TEXT,
        }
        for number, (at, of) in enumerate(
            zip(part.at.tolist(), part.producer.tolist(), strict=True)
        )
    ]


def _share(of: list[Any], number: int, count: int) -> list[Any]:
    size = -(-len(of) // count)
    return of[number * size : (number + 1) * size]
