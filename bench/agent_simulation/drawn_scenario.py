"""Scenarios that differ in everything, drawn by a number: for tests that look for mistakes."""

from __future__ import annotations

from random import Random

from bench.agent_simulation.scenario import ClockModel, FaultPlan, LinkModel, LogModel, Scenario


def drawn(seed: int, nodes: int = 40, windows: int = 10) -> Scenario:
    """The scenario of a seed."""
    draw = Random(seed)
    some = draw.choice
    latency = some(["5s", "10s", "20s", None])
    return Scenario(
        seed=seed,
        nodes=nodes,
        windows=windows,
        latency=latency,
        slide=some(["5s", "10s"]),
        fan_out=some([3, 8, 32]),
        capacity=some([3, 8]),
        serving=some([0.3, 0.6]),
        clocks=ClockModel(some([0.0, 2.0]), some([0.0, 0.05]), farthest=30.0),
        logs=LogModel(disordered=some([0.0, 0.1]), broken=some([0.0, 0.01])),
        links=LinkModel(
            lost=some([0.0, 0.02, 0.1]),
            unanswered=some([0.0, 0.02, 0.1]),
            slow=some([0.0, 0.01, 0.05]),
        ),
        faults=FaultPlan(
            parents=some([0, 4, 10]),
            leaves=some([0, 3]),
            rack=some([0, 6]),
            partitions=some([0, 4]),
            root_restarts=some([0, 2]),
            away=some([(1.0, 5.0), (3.0, 40.0)]),
            never_back=some([0.0, 0.3]) if latency is not None else 0.0,
        ),
    )
