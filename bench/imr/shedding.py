"""Figure 8: latency and fidelity of a node's windows while other work takes its core."""

from __future__ import annotations

from typing import Any

from bench.bench import Bench
from bench.imr import live, nodes
from bench.imr.plan import Shedding
from bench.imr.pressed import Calibrated, job, pressed

Row = dict[str, Any]


def run(bench: Bench, plan: Shedding, known: Calibrated) -> list[Row]:
    """A row for each policy and number of processes that burn the node's core."""
    _, rest = nodes.split_cores()
    timed, rows = plan.timed, list[Row]()
    runs = [(burns, policy) for burns in plan.burns for policy in plan.policies]
    jobs = [job(f"{policy}{burns}", timed, policy, known.latency) for burns, policy in runs]
    with live.root(bench, "shedding", jobs, rest) as root:
        for burns, policy in runs:
            given = (f"{policy}{burns}", timed, known.rate, known.latency)
            row, _ = pressed(bench, root, *given, policy=policy, burns=burns)
            rows.append({"what": f"{burns} burning, {policy}", "burns": burns, "policy": policy})
            rows[-1] |= {**row, "asked_s": known.latency, "rate": round(known.rate)}
            bench.say(f"    {rows[-1]['what']}: {row['fidelity']:.0%}, met {row['met']:.0%}")
    return rows
