"""`python -m bench [names ...] [--quick]`."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from bench import (
    aggregates,
    batch_updates,
    ctr,
    dump,
    executor_lost,
    flush,
    growth,
    hot_key,
    hot_topics,
    kafka,
    keyed_updates,
    latency,
    live,
    overload,
    poison,
    readers,
    recovery,
    shared,
    soak,
    startup,
    tables,
    zipf,
)
from bench.agent_simulation import cases as agents
from bench.apart import RunFailedError
from bench.bench import Bench
from bench.feeds import cases as feeds
from bench.figures import Outcome
from bench.imr import cases as imr
from bench.machine import commit, machine
from bench.peers import cases as peers
from bench.results import RESULTS, record, write
from bench.s4 import cases as s4
from bench.table import table
from fault_runs.ending import ended_in_order

CASES: dict[str, Callable[[Bench], Outcome]] = {
    "keyed_updates": keyed_updates.run,
    "zipf": zipf.run,
    "hot_topics": hot_topics.run,
    "latency": latency.run,
    "growth": growth.run,
    "live": live.run,
    "dump": dump.run,
    "aggregates": aggregates.run,
    "batch_updates": batch_updates.run,
    "overload": overload.run,
    "hot_key": hot_key.run,
    "poison": poison.run,
    "recovery": recovery.run,
    "executor_lost": executor_lost.run,
    "shared": shared.run,
    "soak": soak.run,
    "flush": flush.run,
    "readers": readers.run,
    "startup": startup.run,
    "ctr": ctr.run,
    "s4": s4.run,
    "imr": imr.run,
    "feeds": feeds.run,
    "agents": agents.run,
    "tables": tables.run,
    "kafka": kafka.run,
    "peers": peers.run,
}
SERVICE_CASES = ("tables", "kafka", "peers")
"""The cases that need servers or other systems; `make bench-services` and `make bench-peers` run
them."""
NOISY = 0.15
"""If other processes use more of the machine than this share, the figures are noise."""
WORK = Path(tempfile.gettempdir()) / "millstream-bench"


@ended_in_order()
def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Run benchmarks.")
    parser.add_argument("names", nargs="*", metavar="name", help=f"of {', '.join(CASES)}; or all")
    parser.add_argument("--quick", action="store_true", help="small: to see that it works")
    only = "some experiments of the case s4, imr, feeds or peers, as in --only fig8"
    parser.add_argument("--only", nargs="+", default=(), metavar="experiment", help=only)
    parser.add_argument("--check", action="store_true", help="fail where a bar is missed")
    parser.add_argument("--work", type=Path, default=WORK, help="the folder for data and stores")
    parser.add_argument("--results", type=Path, default=RESULTS, help="the folder for the JSON")
    given = parser.parse_args(arguments)
    for name in given.names:
        if name not in CASES:
            parser.error(f"there is no case {name!r}; there are {', '.join(CASES)}")
    bench = Bench(given.work, given.quick, tuple(given.only), given.results)
    missed = False
    for name in given.names or [name for name in CASES if name not in SERVICE_CASES]:
        bench.say(f"{name}: started {datetime.now():%H:%M:%S}")
        try:
            outcome = CASES[name](bench)
        except RunFailedError as error:
            print(f"{name}: failed: {error}", file=sys.stderr)
            missed = True
            continue
        found = record(outcome, machine(), commit(), datetime.now(UTC).isoformat(), given.quick)
        path = write(given.results, found)
        print(f"\n{told(outcome, given.quick)}\n{path}\n{outcome.last_line}", flush=True)
        missed |= given.check and not given.quick and not all(b.held for b in outcome.bars)
    return int(missed)


def told(outcome: Outcome, quick: bool) -> str:
    """The table, the notes and the bars."""
    lines = [table(outcome.rows), *outcome.notes]
    others = max((row.get("cpu_others", 0.0) for row in outcome.rows), default=0.0)
    if others > NOISY:
        lines.append(f"NOISE: others took up to {others:.0%} of the machine; do not quote these")
    if quick:
        lines.append("a quick run: too little to judge the bars by")
    else:
        lines.extend(map(str, outcome.bars))
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
