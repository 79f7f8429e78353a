"""The figures of a run: messages per node and second, and the cost of a parent's death."""

from __future__ import annotations

from statistics import mean
from typing import Any, get_args

from bench.agent_simulation.made_up_log import SECOND
from bench.agent_simulation.simulation import Simulation
from bench.agent_simulation.traffic import Kind
from bench.agent_simulation.truth import answers, problems
from bench.figures import percentile

AFTER = 60.0
"""Seconds after a death in which a window that lacks somebody is put down to it."""
KIB = 1024


def rows(here: Simulation, what: str) -> list[dict[str, Any]]:
    """A row for the leaves, one for the parents, one for the root."""
    parents = sorted(here.parents)
    leaves = sorted(here.nodes.keys() - here.parents)
    of = {"leaves": leaves, "parents": parents, "the root": ["root"]}
    return [
        {"what": f"{what}, {role}", **messages(here, names)} for role, names in of.items() if names
    ]


def messages(here: Simulation, names: list[str]) -> dict[str, Any]:
    """Requests a second that nodes make and get, over the time that was counted."""
    traffic, seconds = here.traffic, here.traffic.seconds
    kinds: tuple[Kind, ...] = get_args(Kind)
    made = [sum(traffic.out[name, kind] for kind in kinds) / seconds for name in names]
    got = [sum(traffic.into[name, kind] for kind in kinds) / seconds for name in names]
    both = [one + other for one, other in zip(made, got, strict=True)]
    found: dict[str, Any] = {
        "count": len(names),
        "made": mean(made),
        "got": mean(got),
        "both": mean(both),
        "both_p99": percentile(both, 0.99),
        "both_max": max(both),
    }
    for kind in kinds:
        of = [(traffic.out[name, kind] + traffic.into[name, kind]) / seconds for name in names]
        found[kind] = mean(of)
    size = [traffic.bytes_out[name] + traffic.bytes_into[name] for name in names]
    found["kib"] = mean(size) / seconds / KIB
    found["kib_max"] = max(size) / seconds / KIB
    return found


def costs(here: Simulation) -> dict[str, Any]:
    """In how many windows those lacked that sent by a parent when it died."""
    missing = {
        here.placed.job.span.bounds(window)[1] / SECOND: {*here.nodes} - {*said.summary["accounts"]}
        for window, said in answers(here).items()
        if window in here.windows and "accounts" in said.summary
    }
    dead = {death.node for death in here.faults.deaths}
    length = here.placed.job.span.length / SECOND
    children: list[int] = []
    below: list[int] = []
    for death in here.faults.deaths:
        at = here.root.wall() / SECOND - here.world.now + death.at
        near = [who for end, who in missing.items() if at - length <= end <= at + length + AFTER]
        for names, found in ((death.children, children), (death.below, below)):
            found += [sum(name in who for who in near) for name in names if name not in dead]
    return {
        "deaths": len(here.faults.deaths),
        "parents_dead": sum(bool(death.children) for death in here.faults.deaths),
        "children": len(children),
        "missed_mean": mean(children) if children else 0.0,
        "missed_max": max(children, default=0),
        "below_missed_max": max(below, default=0),
    }


def outcome(here: Simulation) -> dict[str, Any]:
    """Returns the reasons for closing the windows, the problems found, and the size of the tree."""
    why: dict[str, int] = {}
    for said in answers(here).values():
        reason = said.summary.get("why", "open")
        why[reason] = why.get(reason, 0) + 1
    found = problems(here)
    depths = [row.depth for row in here.root.placement.rows(here.world.now)]
    return {
        "windows": sum(why.values()),
        "why": why,
        "records": here.truth.written.total(),
        "problems": len(found),
        "first_problems": found[:3],
        "depth": max(depths, default=0),
        "seconds": here.world.now,
        "cpu_s": here.cpu,
        "steps": here.world.steps,
    }
