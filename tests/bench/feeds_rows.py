"""Rows of every experiment of the evaluation of Feeding Frenzy, made up, for tests of what is made
of them."""

from __future__ import annotations

from typing import Any

Row = dict[str, Any]
SHARED = {"costs": {"high": 45.0, "low": 15.0, "post": 80.0, "query": 100.0, "view": 40.0}}
CPU = {
    4: {"push all": 1_200.0, "push none": 900.0, "hybrid": 810.0},
    16: {"push all": 2_000.0, "push none": 2_500.0, "hybrid": 1_600.0},
}


def rows() -> list[Row]:
    """A few rows of each experiment."""
    return [
        *(row for ratio in CPU for row in _policies("fig4", ratio, ratio=ratio)),
        *_policies("full", 16, ratio=16),
        *_policies("diverse", 16, ratio=16),
        *_deciding(),
        *_policies("fig5", 4, ratio=16, factor=0.5, events=0.28, queries=0.31),
        *_policies("fig5", 16, ratio=16, factor=1.5, events=0.86, queries=0.93),
        *(_cost("fig6", f"{at}", factor=at, mean_ms=0.1 + at / 10) for at in (4.0, 1.0, 0.1)),
        *_fig7(),
        *_fig8(),
        *(_cost("fig9", f"{n} followers", fan_out=n, cpu_us=100.0 * n) for n in (5, 15)),
        *_fig10(),
        *_reads(),
    ]


def _policies(experiment: str, at: int, **of: Any) -> list[Row]:
    return [
        _cost(
            experiment,
            f"{at}, {policy}",
            **{"policy": policy, "cpu_us": cpu, "policy_us": cpu - 500, "low": 15.0},
            **of,
        )
        for policy, cpu in CPU[at].items()
    ]


def _cost(experiment: str, what: str, **of: Any) -> Row:
    row = {
        "experiment": experiment,
        "what": what,
        "policy": "hybrid",
        "threshold": of.get("factor", 1.0) * 3,
        **{"posts": 100, "reads": 100, "pushes": 5.0, "pulls": 1.0, "sides": 3, "items": 12.0},
        **{"maintenance_us": 300.0, "query_us": 100.0, "cpu_us": 1_000.0, "model_us": 500.0},
        **{"mean_ms": 0.2, "p95_ms": 0.4, "cpu_others": 0.01},
    }
    return {**row, **of}


def _deciding() -> list[Row]:
    points = [("push all", 0.0, 1_000.0), ("push none", 0.0, 1_200.0)]
    points += [("per pair", 3.0, 800.0), ("per consumer", 3.0, 900.0)]
    return [
        _cost("deciding", f"{one}, {at}", decided=one, threshold=at, cpu_us=cpu)
        for one, at, cpu in points
    ]


def _fig7() -> list[Row]:
    shares = {"pairs": 0.5, "half": 0.4, "whole": 0.3, "queries_half": 0.7, "queries_whole": 0.6}
    return [
        {"experiment": "fig7", "what": f"{at}", "factor": at, "threshold": 3 * at, **shares}
        for at in (4.0, 1.0)
    ]


def _fig8() -> list[Row]:
    return [
        _cost("fig8", f"{strategy}, {saved}", strategy=strategy, factor=at, saved=saved, cpu_us=cpu)
        for at, saved in ((1.0, 0.0), (0.5, 900.0))
        for strategy, cpu in (("per pair", 950.0), ("per consumer", 1_000.0))
    ]


def _fig10() -> list[Row]:
    points = [
        {
            "experiment": "fig10",
            "what": f"{at:+} s",
            "at": float(at),
            "phase": "before" if at < 0 else "after",
            **{"cpu_ms": 50.0, "maintenance_ms": 20.0, "query_ms": 30.0},
            **{"posts": 9, "pushes": 90, "pulls": 60, "sides": 0},
        }
        for at in (-5, 0, 5)
    ]
    summary = {"before_ms": 50.0, "peak_ms": 200.0, "settled": 1.02, "back_s": 35.0, "flips": 1}
    return [*points, {"experiment": "fig10", "what": "all", **summary, "flipped": 300}]


def _reads() -> list[Row]:
    live = {
        **{"posts_per_s": 999.0, "reads": 6_000, "p50_ms": 2.0, "p95_ms": 8.0, "p99_ms": 60.0},
        **{"max_ms": 90.0, "server_p95_ms": 7.0, "server_p99_ms": 50.0, "items": 18.0},
        **{"incomplete": 0, "cores_server": 0.5, "lag_events": 0, "post_p99_ms": 9.0, "not_200": 0},
    }
    correct = {
        **{"reads": 50_000, "violations": 0, "batches": 300, "kills": 80, "retries": 50},
        **{"flips": 2_000, "pulled": 10_000, "items": 90_000},
    }
    followed = {
        **{"pushes": 1_000, "batches": 3, "push_us": 80.0, "longest_s": 0.4},
        **{"memory_mib": 9.0, "reads": 900, "violations": 0},
    }
    return [
        {"experiment": "followers", "what": "2,000", "followers": 2_000, **followed},
        {"experiment": "reads", "what": "1,000 posts/s, 100 reads/s", **live},
        {"experiment": "reads-correct", "what": "decided per-pair", **correct},
        {"experiment": "reads-correct", "what": "decided per-consumer", **correct},
    ]
