"""`python -m fault_runs [--cluster | --services] [--seeds N] [--first N] [--seed N ...]
[--only NAME ...] [--out FILE]`.

Runs scenarios, and prints a progress line for each run. The result of each run is added to the file
of results at once, so a long series may be interrupted and done in parts. With --cluster it runs
the scenarios that need hosts of their own, as root; with --services those that need real servers.
Exits with 1 if anything was lost or doubled, or if a run did not finish; the folder of such a run
is kept.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
import traceback
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from bench.machine import commit, machine
from fault_runs.cluster_faults import CLUSTER_SCENARIOS
from fault_runs.ending import ended_in_order
from fault_runs.records import CLUSTER_FILE, FILE, SERVICE_FILE, write
from fault_runs.result import Result, line_of
from fault_runs.scenario import Context, Scenario
from fault_runs.scenarios import SCENARIOS
from fault_runs.service_faults import SERVICE_SCENARIOS

MOST_SEEDS = 100


@ended_in_order()
def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m fault_runs", description="Run fault runs.")
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument("--cluster", action="store_true", help="those on a cluster of hosts")
    kinds.add_argument("--services", action="store_true", help="those with real servers")
    parser.add_argument(
        "--seeds", type=int, metavar="N", help="seeds of each; as many as give its least runs"
    )
    parser.add_argument("--first", type=int, default=0, metavar="N", help="the first of them; 0")
    parser.add_argument("--seed", type=int, action="append", metavar="N", help="only this seed")
    parser.add_argument(
        "--only",
        nargs="+",
        action="extend",
        choices=[*SCENARIOS, *CLUSTER_SCENARIOS, *SERVICE_SCENARIOS],
        metavar="NAME",
        help=f"of {', '.join(SCENARIOS)}; with --cluster of {', '.join(CLUSTER_SCENARIOS)}; with "
        f"--services of {', '.join(SERVICE_SCENARIOS)}",
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help=f"{FILE.name}")
    given = parser.parse_args(arguments)
    scenarios, file = SCENARIOS, FILE
    if given.cluster:
        scenarios, file = CLUSTER_SCENARIOS, CLUSTER_FILE
    elif given.services:
        scenarios, file = SERVICE_SCENARIOS, SERVICE_FILE
    out: Path = given.out or file
    for name in given.only or ():
        if name not in scenarios:
            parser.error(f"{name} is of another kind; those of this one are {', '.join(scenarios)}")
    seeds = given.seed or range(given.first, given.first + (given.seeds or MOST_SEEDS))
    names = given.only or [*scenarios]
    where, measured = machine(), commit()
    clean = True
    with closing(Context()) as context:
        for number, name in enumerate(names):
            runs = 0
            for seed in seeds:
                began = time.monotonic()
                result = run_one(scenarios[name], seed, context)
                clean, runs = clean and result.clean, runs + result.runs
                date = datetime.now(UTC).strftime("%Y-%m-%d")
                write(out, [result], scenarios, where, measured, date)
                line = line_of(result, time.monotonic() - began)
                print(f"[{number + 1}/{len(names)}] {line}", flush=True)
                if not (given.seed or given.seeds) and runs >= scenarios[name].least:
                    break
    print(f"{'nothing lost, nothing doubled' if clean else 'NOT CLEAN'}; {out}")
    return 0 if clean else 1


def run_one(scenario: Scenario, seed: int, context: Context) -> Result:
    """Does one run in a folder of its own, which is kept if the run was not clean."""
    folder = Path(tempfile.mkdtemp(prefix=f"fault-{scenario.name}-{seed}-"))
    try:
        result = scenario.run(seed, folder, context)
    except Exception as error:
        traceback.print_exc()
        result = Result(scenario.name, seed, 0, 0, failed=f"{type(error).__name__}: {error}"[:500])
    if result.clean:
        shutil.rmtree(folder, ignore_errors=True)
    else:
        print(f"kept: {folder}", file=sys.stderr)
    return result


if __name__ == "__main__":
    sys.exit(main())
