"""Rows of every experiment of the iMR evaluation, made up, for tests of what is made of them."""

from __future__ import annotations

from typing import Any

Row = dict[str, Any]
SHARED = {"calibrated": {"capacity": 1e5, "rate": 6e4, "latency": 1.5, "took": 1.4}}
COUNT = {"how": "simulated", "kind": "count", "of": "total"}


def rows() -> list[Row]:
    """A few rows of each experiment."""
    return [
        *_fig7(),
        *(_pressed("fig8", burns=2, policy=policy) for policy in ("none", "order", "drawn")),
        *_by_part("fig9", count_error=0.5, frequency_error=0.1, frequency_deviation=0.2, found=1.0),
        *_fig10(),
        *_by_part("fig11", user_error=0.1, found_user_error=0.01, total_error=0.04, found=0.9),
        *_by_part("fig12", rejects=0.25, distance=0.1, found=1.0),
        *(_pressed("fig13", nice=n, policy=p) for n in (0, 10) for p in ("none", "order")),
        *_waiting(),
        *_latency("fig11c"),
        *_latency("fig12b"),
        _row("coverage", "count, total", **COUNT, intervals=1_000, covered=0.95),
        _row("coverage", "count, home", **{**COUNT, "of": "home"}, intervals=900, covered=0.94),
        _row("coverage", "count, total", how="panes", intervals=40, covered=0.9),
        _row("contract", "±5%", windows=1_000, held=0.99, data=0.4),
        *_clocks(),
        *_crowd(),
        _row("crossover", "1/2", slides=2, anew_ms=1.0, moved_ms=2.0, ratio=2.0),
        _row("crossover", "1/8", slides=8, anew_ms=4.0, moved_ms=2.0, ratio=0.5),
    ]


def _row(experiment: str, what: str, **columns: Any) -> Row:
    return {"experiment": experiment, "what": what, **columns}


def _fig7() -> list[Row]:
    return [
        _row(
            "fig7",
            f"{agents} agents, {reducers} reducers",
            agents=agents,
            reducers=reducers,
            records=1_000,
            missing=0,
            records_per_s=50_000.0 * agents,
            agent_mib=40.0 + agents,
            busy=0.4 if agents == 1 else 0.95,
            cpu_others=0.01,
        )
        for agents in (1, 2)
        for reducers in (1, 2)
    ]


def _pressed(experiment: str, **of: Any) -> Row:
    shed = of["policy"] != "none"
    return _row(
        experiment,
        str(of),
        **of,
        windows=10,
        met=1.0 if shed else 0.2,
        fidelity=0.6 if shed else 0.3,
        whenever=0.6 if shed else 0.4,
        latency_s=1.0 if shed else None,
        latency_max_s=1.2 if shed else None,
        never=0 if shed else 10,
        why="failure 10",
        asked_s=1.5,
        other=0.7,
    )


def _by_part(experiment: str, **columns: float) -> list[Row]:
    return [
        _row(experiment, f"{asked}, {part}", asked=asked, part=part, **columns)
        for asked in ("drawn", "spatial", "temporal")
        for part in (0.5, 1.0)
    ]


def _fig10() -> list[Row]:
    return [
        _row("fig10", "2", replaced=2, told=told, goodput=goodput, window_s=8.0, why="failure 6")
        for told, goodput in ((False, 2.0), (True, 3.5))
    ]


def _waiting() -> list[Row]:
    return [
        _row("waiting", asked, asked=asked, window_s=seconds, fidelity=0.5, why="fidelity 3")
        for asked, seconds in (("full", 10.0), ("drawn", 6.0), ("error", 5.0))
    ]


def _latency(experiment: str) -> list[Row]:
    return [
        _row(
            experiment,
            asked,
            asked=asked,
            part=part,
            window_s=seconds,
            fidelity=part,
            why="fidelity 1",
        )
        for asked, part, seconds in (("full", 1.0, 8.0), ("drawn", 0.5, 4.0), ("drawn", 0.75, 6.0))
    ]


def _crowd() -> list[Row]:
    return [
        _row(
            "crowd",
            kind,
            kind=kind,
            windows=6,
            right=6,
            requests_per_s=80.0,
            latency_s=1.0,
            server_mib=90.0,
            root_mib=900.0,
            agent_mib=35.0,
            below_root=below,
        )
        for kind, below in (("direct", 200), ("tree", 10))
    ]


def _clocks() -> list[Row]:
    return [
        _row(
            "clocks",
            kind,
            kind=kind,
            latency_s=latency,
            longer_s=latency - 1.0,
            latency_max_s=2.0,
            fidelity=1.0,
            why="complete 6",
        )
        for kind, latency in (("alike", 1.0), ("idle", 1.1), ("ahead", 1.5))
    ]
