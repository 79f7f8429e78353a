"""The push threshold: what it does to latency and cost (Figure 6), how much is pushed by it (Figure
7), and whether pairs or whole consumers are the better thing to decide on, and to move (Figure
8)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.bench import Bench
from bench.feeds.costs import HYBRID, PULL, PUSH, Calibrated, Run, costed, measured
from bench.feeds.follow_network import FollowNetwork, Pair
from bench.feeds.laid import consumer, producer
from bench.feeds.network import HOUR, Network, Shape, network
from bench.feeds.plan import Deciding, Strategies, Thresholds
from bench.feeds.push_adaptation import moves_of

Row = dict[str, Any]
PAIRS, CONSUMERS = "per pair", "per consumer"
NO_PAIR = 1e6
"""A threshold by which no pair is pushed."""


def thresholds(bench: Bench, plan: Thresholds, known: Calibrated) -> list[Row]:
    """Figure 6: latency and cost by the threshold."""
    of = network(Shape().scaled(plan.of.scale).at_ratio(plan.ratio), plan.of.seed)
    rows: list[Row] = []
    runs = {f"{factor:g}": Run(HYBRID, factor * known.ratio) for factor in plan.factors}
    for factor, found in zip(plan.factors, measured(bench, plan.of, of, runs), strict=True):
        row = costed(found, plan.ratio, known)
        rows.append({"what": f"threshold {row['threshold']:.2f}", "factor": factor, **row})
        told = f"{row['cpu_us']:,.0f} µs a post, reads {row['mean_ms']:.3f} ms"
        bench.say(f"    {rows[-1]['what']}: {told}")
    return rows


def pushed_parts(bench: Bench, plan: Thresholds, known: Calibrated) -> list[Row]:
    """Figure 7: whose events are pushed, by the threshold."""
    of = network(Shape().scaled(plan.of.scale).at_ratio(plan.ratio), plan.of.seed)
    rows: list[Row] = []
    for factor in plan.factors:
        threshold = factor * known.ratio
        part = pushed_part(of, of.pushed(threshold))
        looks = of.query_rates / of.query_rates.sum()
        rows.append(
            {
                "what": f"threshold {threshold:.2f}",
                "factor": factor,
                "threshold": threshold,
                "pairs": float(of.pushed(threshold).mean()),
                "half": float((part >= 0.5).mean()),
                "whole": float((part >= 1.0).mean()),
                "queries_half": float(looks[part >= 0.5].sum()),
                "queries_whole": float(looks[part >= 1.0].sum()),
            }
        )
    return rows


def pushed_part(of: Network, pushed: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Returns, for each consumer, the fraction of its feed's events that is pushed."""
    events = of.event_rates[of.producer]
    count = len(of.query_rates)
    whole = np.bincount(of.consumer, events, count)
    some = np.bincount(of.consumer, np.where(pushed, events, 0.0), count)
    every = np.bincount(of.consumer, ~pushed, count) == 0  # sums of the same may differ a little
    return np.where(every, 1.0, np.minimum(0.999_999, some / np.maximum(whole, 1e-12)))


def deciding(bench: Bench, plan: Deciding, known: Calibrated) -> list[Row]:
    """Compares the cost of deciding pairs one by one (Lemma 1), or all of a consumer's together
    (Lemma 2), with that of all pairs on one side."""
    of = network(Shape().scaled(plan.of.scale).at_ratio(plan.ratio), plan.of.seed)
    runs, points = {PUSH: Run(PUSH), PULL: Run(PULL)}, [(PUSH, 0.0), (PULL, 0.0)]
    for factor in plan.factors:
        threshold = factor * known.ratio
        whole = Run(HYBRID, NO_PAIR, of.pushed_whole(threshold))
        runs |= {f"{PAIRS}, {factor:g}": Run(HYBRID, threshold), f"{CONSUMERS}, {factor:g}": whole}
        points += [(PAIRS, threshold), (CONSUMERS, threshold)]
    rows: list[Row] = []
    for (decided, threshold), found in zip(points, measured(bench, plan.of, of, runs), strict=True):
        row = {**costed(found, plan.ratio, known), "threshold": threshold}
        what = f"{decided}, threshold {threshold:.2f}" if threshold else decided
        rows.append({"what": what, "decided": decided, **row})
        bench.say(f"    {what}: {row['cpu_us']:,.0f} µs a post")
    return rows


def strategies(bench: Bench, plan: Strategies, known: Calibrated) -> list[Row]:
    """Figure 8: from MinCost on, as many pulls are saved by either strategy."""
    of = network(Shape().scaled(plan.of.scale).at_ratio(plan.ratio), plan.of.seed)
    moves = _moves(of, known)
    cheapest = of.pushed(known.ratio)
    points: list[tuple[str, float, float]] = []
    runs: dict[str, Run] = {}
    for factor in plan.factors:
        moved = of.pushed(factor * known.ratio) & ~cheapest
        saved = float(of.query_rates[of.consumer][moved].sum())
        points += [(PAIRS, factor, saved), (CONSUMERS, factor, saved)]
        runs[f"{PAIRS}, {factor:g}"] = Run(HYBRID, factor * known.ratio)
        runs[f"{CONSUMERS}, {factor:g}"] = Run(HYBRID, known.ratio, first_moves(moves, saved))
    rows: list[Row] = []
    found = measured(bench, plan.of, of, runs)
    for (strategy, factor, saved), one in zip(points, found, strict=True):
        row = costed(one, plan.ratio, known)
        what = f"{strategy}, {saved:,.0f} pulls an hour less"
        rows.append({"what": what, "strategy": strategy, "factor": factor, "saved": saved, **row})
        told = f"{row['cpu_us']:,.0f} µs a post, {row['pulls']:.2f} pulls a read"
        bench.say(f"    {what}: {told}")
    return rows


def first_moves(moves: list[tuple[int, float]], saved: float) -> frozenset[int]:
    """The consumers that are moved first, until so many pulls an hour are saved."""
    chosen, sum_of = set(), 0.0
    for number, saves in moves:
        if sum_of >= saved:
            break
        chosen.add(number)
        sum_of += saves
    return frozenset(chosen)


def _moves(of: Network, known: Calibrated) -> list[tuple[int, float]]:
    """The consumers in the order in which whole ones are moved, and the pulls an hour that it
    saves."""
    events, queries = of.event_rates.tolist(), of.query_rates.tolist()
    pairs = tuple(
        Pair(consumer(c), producer(p), queries[c] / HOUR, events[p] / HOUR)
        for p, c in zip(of.producer.tolist(), of.consumer.tolist(), strict=True)
    )
    moves = moves_of(FollowNetwork(pairs, known.high, known.low), "per-consumer")
    return [
        (int(move.pairs[0].consumer[1:]), HOUR * sum(pair.query_rate for pair in move.pairs))
        for move in moves
    ]
