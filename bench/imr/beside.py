"""Figure 13: an agent beside other work on the same core, by its priority: what its windows have,
and what the other work loses."""

from __future__ import annotations

import time
from typing import Any

from bench.bench import Bench
from bench.imr import live, nodes
from bench.imr.plan import Beside
from bench.imr.pressed import Calibrated, job, pressed

Row = dict[str, Any]
POLICIES = ("none", "order")


def run(bench: Bench, plan: Beside, known: Calibrated) -> list[Row]:
    """Makes a row for each niceness, with and without shedding. The other work is relative to its
    amount alone."""
    own, rest = nodes.split_cores()
    timed, rows = plan.timed, list[Row]()
    runs = [(nice, policy) for nice in plan.nices for policy in POLICIES]
    jobs = [job(f"{policy}{nice}", timed, policy, known.latency) for nice, policy in runs]
    with live.root(bench, "beside", jobs, rest) as root:
        with live.burnt(root.folder, 1, own) as done:
            time.sleep(plan.alone)
        alone = done[0]["per_s"]
        for nice, policy in runs:
            given = (f"{policy}{nice}", timed, known.rate, known.latency)
            row, _ = pressed(bench, root, *given, policy=policy, burns=1, nice=nice)
            rows.append({"what": f"nice {nice}, {policy}", "nice": nice, "policy": policy})
            rows[-1] |= {**row, "other": row["other_per_s"] / alone, "asked_s": known.latency}
            bench.say(f"    {rows[-1]['what']}: {row['fidelity']:.0%}, {rows[-1]['other']:.0%}")
    return rows
