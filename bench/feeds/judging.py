"""The rows of the experiments as figures and bars. Pure.

An experiment that was not run has no figures and no bars.
"""

from __future__ import annotations

from collections.abc import Callable

from bench.experiments import Figures, Judging, Row

HYBRID, PAIRS = "hybrid", "per pair"
MEDIAN = 16
"""Queries for each event: the paper's median scenario."""
NOTES = [
    "fig4, full, diverse, fig5: CPU time of a post and the queries that there are for it; policy: "
    "without what no policy changes, a post that is pushed to nobody and a read that pulls "
    "nothing; model: H for each push and L for each pull, as measured at the start; reads are a "
    "sample",
    "fig6, fig8: the time of a read by the clock, in the same process, without HTTP",
    "fig7: consumers, and queries, that have so much of their events pushed",
    "fig8: the threshold is turned, or whole consumers are moved, until as many pulls are saved",
    "fig10: simulated time; back: a point, and the median of six from it on, is within 10% of the "
    "baseline",
    "reads: over HTTP, from when a read was due until its answer was here",
    "reads-correct: answers that are not what brute force says as of their batch",
]


def gains(rows: list[Row], point: str, column: str) -> dict[float, float]:
    """By point, how much less hybrid costs than the better of the other two."""
    found: dict[float, float] = {}
    for at in sorted({row[point] for row in rows}):
        costs = {row["policy"]: row[column] for row in rows if row[point] == at}
        others = [cost for policy, cost in costs.items() if policy != HYBRID]
        if HYBRID in costs and others:
            found[at] = 1 - costs[HYBRID] / min(others)
    return found


def fig4(rows: list[Row]) -> Figures:
    whole, policy = gains(rows, "ratio", "cpu_us"), gains(rows, "ratio", "policy_us")
    found: Figures = {}
    if whole:
        found |= {"fig4_least_gain": min(whole.values())}
        found |= {"fig4_most_gain": max(whole.values())}
        found |= {"fig4_policy_least_gain": min(policy.values())}
    if MEDIAN in whole:
        found |= {"fig4_gain_16": whole[MEDIAN], "fig4_policy_gain_16": policy[MEDIAN]}
    return found


def full(rows: list[Row]) -> Figures:
    whole, policy = gains(rows, "ratio", "cpu_us"), gains(rows, "ratio", "policy_us")
    if not whole:
        return {}
    return {"full_gain": min(whole.values()), "full_policy_gain": min(policy.values())}


def diverse(rows: list[Row]) -> Figures:
    whole, policy = gains(rows, "ratio", "cpu_us"), gains(rows, "ratio", "policy_us")
    found: Figures = {"diverse_least_gain": min(whole.values())} if whole else {}
    if MEDIAN in policy:
        found["diverse_policy_gain_16"] = policy[MEDIAN]
    return found


def deciding(rows: list[Row]) -> Figures:
    """For pairs decided one by one, and for whole consumers: the largest gain over the better of
    all push and all pull."""
    best = {
        decided: min(row["cpu_us"] for row in rows if row["decided"] == decided)
        for decided in {row["decided"] for row in rows}
    }
    others = min(best["push all"], best["push none"])
    return {
        "deciding_pairs_gain": 1 - best[PAIRS] / others,
        "deciding_consumers_gain": 1 - best["per consumer"] / others,
    }


def fig5(rows: list[Row]) -> Figures:
    """Compares the gain at the most skew with that at the least."""
    whole, policy = gains(rows, "factor", "cpu_us"), gains(rows, "factor", "policy_us")
    found: Figures = {}
    if len(whole) > 1:
        least, most = min(whole), max(whole)
        found["fig5_more_gain"] = whole[most] - whole[least]
        found["fig5_policy_more_gain"] = policy[most] - policy[least]
    return found


def fig6(rows: list[Row]) -> Figures:
    """Checks whether more pushing makes reads faster, and how far H/L is from the cheapest
    setting."""
    ordered = sorted(rows, key=lambda row: -float(row["threshold"]))
    found = {
        "fig6_latency_of_least": ordered[-1]["mean_ms"] / ordered[0]["mean_ms"],
        "fig6_p95_of_least": ordered[-1]["p95_ms"] / ordered[0]["p95_ms"],
    }
    at = [row["cpu_us"] for row in rows if row["factor"] == 1]
    if at:
        found["fig6_over_cheapest"] = at[0] / min(row["cpu_us"] for row in rows) - 1
    return found


def fig7(rows: list[Row]) -> Figures:
    """The part of consumers that have everything pushed, at the threshold H/L."""
    at = [row["whole"] for row in rows if row["factor"] == 1]
    return {"fig7_whole": at[0]} if at else {}


def fig8(rows: list[Row]) -> Figures:
    """Compares the cost per pair with that per consumer at equal pulls, at the worst point."""
    ratios, model = [], []
    for factor in {row["factor"] for row in rows if row["saved"] > 0}:
        point = {row["strategy"]: row for row in rows if row["factor"] == factor}
        if len(point) == 2:
            pairs = point.pop(PAIRS)
            (other,) = point.values()
            ratios.append(pairs["cpu_us"] / other["cpu_us"])
            model.append(pairs["model_us"] / other["model_us"])
    return {"fig8_cost": max(ratios), "fig8_model": max(model)} if ratios else {}


def fig9(rows: list[Row]) -> Figures:
    """By how much the cost rises from the least fan-out to the largest, by how much that does."""
    ordered = sorted(rows, key=lambda row: int(row["fan_out"]))
    rise = ordered[-1]["cpu_us"] / ordered[0]["cpu_us"]
    return {"fig9_rise": rise, "fig9_fan_out_rise": ordered[-1]["fan_out"] / ordered[0]["fan_out"]}


def fig10(rows: list[Row]) -> Figures:
    found: Figures = {}
    for row in rows:
        if row["what"] == "all":
            found |= {"fig10_back_s": row["back_s"], "fig10_flips": row["flips"]}
            found |= {"fig10_peak": row["peak_ms"] / row["before_ms"]}
            if row["settled"] is not None:
                found["fig10_settled"] = row["settled"]
    return found


def followers(rows: list[Row]) -> Figures:
    """Compares the cost with the most followers to that with the fewest, per push and in total."""
    ordered = sorted(rows, key=lambda row: int(row["followers"]))
    few, many = ordered[0], ordered[-1]
    return {
        "followers_rise": many["followers"] / few["followers"],
        "followers_push_rise": many["push_us"] / few["push_us"],
        "followers_memory_mib": max(row["memory_mib"] for row in rows),
        "followers_violations": sum(row["violations"] for row in rows),
    }


def reads(rows: list[Row]) -> Figures:
    names = ("p50_ms", "p95_ms", "p99_ms")
    found = {f"reads_{name}": max(row[name] for row in rows) for name in names}
    found["reads_posts_per_s"] = min(row["posts_per_s"] for row in rows)
    found["reads_not_200"] = sum(row["not_200"] for row in rows)
    return found


def correct(rows: list[Row]) -> Figures:
    return {
        "correct_reads": sum(row["reads"] for row in rows),
        "correct_violations": sum(row["violations"] for row in rows),
    }


OF: dict[str, Callable[[list[Row]], Figures]] = {
    "fig4": fig4,
    "full": full,
    "diverse": diverse,
    "deciding": deciding,
    "fig5": fig5,
    "fig6": fig6,
    "fig7": fig7,
    "fig8": fig8,
    "fig9": fig9,
    "fig10": fig10,
    "followers": followers,
    "reads": reads,
    "reads-correct": correct,
}
BARS: dict[str, tuple[float, bool]] = {
    "failed": (0, False),
    "fig4_least_gain": (0, True),
    "fig4_gain_16": (0.14, True),
    "full_gain": (0.14, True),
    "fig4_policy_gain_16": (0.14, True),
    "fig5_more_gain": (0, True),
    "fig6_latency_of_least": (1, False),
    "fig8_cost": (1, False),
    "fig10_back_s": (60, False),
    "fig10_settled": (1.1, False),
    "fig10_flips": (1, False),
    "followers_violations": (0, False),
    "reads_p95_ms": (20, False),
    "reads_p99_ms": (50, False),
    "reads_posts_per_s": (990, True),
    "reads_not_200": (0, False),
    "correct_reads": (100_000, True),
    "correct_violations": (0, False),
}


JUDGING = Judging(OF, BARS, NOTES)
