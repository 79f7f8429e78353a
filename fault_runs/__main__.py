"""`python -m fault_runs [--seeds N] [--first N] [--seed N ...] [--only NAME ...] [--out FILE]`.

Runs scenarios, a progress line for each run, and adds what they found to the file of results after
each, so that a long run may be done in parts and be broken off. Ends with 1 if anything was lost or
doubled, or if a run did not come to its end; the folder of such a run is kept.
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
from fault_runs.ending import ended_in_order
from fault_runs.records import FILE, write
from fault_runs.result import Result, line_of
from fault_runs.scenario import Context, Scenario
from fault_runs.scenarios import SCENARIOS

MOST_SEEDS = 100


@ended_in_order()
def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m fault_runs", description="Run fault runs.")
    parser.add_argument(
        "--seeds", type=int, metavar="N", help="seeds of each; as many as give its least runs"
    )
    parser.add_argument("--first", type=int, default=0, metavar="N", help="the first of them; 0")
    parser.add_argument("--seed", type=int, action="append", metavar="N", help="only this seed")
    parser.add_argument(
        "--only",
        nargs="+",
        action="extend",
        choices=[*SCENARIOS],
        metavar="NAME",
        help=f"of {', '.join(SCENARIOS)}",
    )
    parser.add_argument("--out", type=Path, default=FILE, metavar="FILE", help=f"{FILE.name}")
    given = parser.parse_args(arguments)
    seeds = given.seed or range(given.first, given.first + (given.seeds or MOST_SEEDS))
    names = given.only or [*SCENARIOS]
    where, measured = machine(), commit()
    clean = True
    with closing(Context()) as context:
        for number, name in enumerate(names):
            runs = 0
            for seed in seeds:
                began = time.monotonic()
                result = run_one(SCENARIOS[name], seed, context)
                clean, runs = clean and result.clean, runs + result.runs
                date = datetime.now(UTC).strftime("%Y-%m-%d")
                write(given.out, [result], SCENARIOS, where, measured, date)
                line = line_of(result, time.monotonic() - began)
                print(f"[{number + 1}/{len(names)}] {line}", flush=True)
                if not (given.seed or given.seeds) and runs >= SCENARIOS[name].least:
                    break
    print(f"{'nothing lost, nothing doubled' if clean else 'NOT CLEAN'}; {given.out}")
    return 0 if clean else 1


def run_one(scenario: Scenario, seed: int, context: Context) -> Result:
    """One run in a folder of its own, which stays if it was not clean."""
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
