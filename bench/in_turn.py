"""Throughput of this commit and of an earlier one, measured in turn on the same machine.

`python -m bench.in_turn COMMIT [--rounds 3] [--only NAME ...] [--least RATIO NAME=RATIO ...]`: each
load runs on both commits in every round, in alternating order; a ratio is that of the medians. The
other commit is checked out next to the data of the benchmarks. `--least` has the bars: one for all
loads, or for a load by its name.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

from bench.__main__ import WORK, told
from bench.calibration import calibrate
from bench.figures import Bar, Outcome
from bench.in_turn_run import LOADS
from bench.machine import ROOT, commit, machine
from bench.results import RESULTS, record, write
from fault_runs.ending import ended_in_order

LEAST = 1.0
"""The least ratio of the rate now to the rate before, for a load that has none of its own."""


@ended_in_order()
def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.in_turn", description=__doc__)
    parser.add_argument("against", metavar="COMMIT", help="the commit to compare with")
    parser.add_argument("--rounds", type=int, default=3, metavar="N")
    parser.add_argument("--only", nargs="+", choices=[*LOADS], default=[*LOADS], metavar="NAME")
    parser.add_argument("--least", nargs="+", default=(), metavar="RATIO", help="the bars")
    given = parser.parse_args(arguments)
    try:
        least = bars_of(given.least)
    except ValueError as error:
        parser.error(str(error))
    outcome = compared(checked_out(given.against), given.only, given.rounds, least)
    outcome.settings["against"] = given.against
    found = record(outcome, machine(), commit(), datetime.now(UTC).isoformat(), quick=False)
    print(f"\n{told(outcome, quick=False)}\n{write(RESULTS, found)}")
    return 0


def bars_of(words: Sequence[str]) -> dict[str, float]:
    """The least ratio of each load, from the words after `--least`.

    >>> bars_of(["2", "HTTP intake=1.5"])["HTTP intake"], bars_of(["2"])["aggregates, sum"]
    (1.5, 2.0)
    """
    least, own = LEAST, {}
    for word in words:
        name, named, ratio = word.rpartition("=")
        try:
            value = float(ratio)
        except ValueError:
            raise ValueError(
                f"--least must be a ratio, or NAME=RATIO, as in 1.5; got {word!r}"
            ) from None
        if not named:
            least = value
        elif name in LOADS:
            own[name] = value
        else:
            raise ValueError(f"--least: there is no load {name!r}; there are {'; '.join(LOADS)}")
    return dict.fromkeys(LOADS, least) | own


def checked_out(name: str) -> Path:
    """A tree with this commit, checked out once."""
    tree = WORK / f"tree-{name}"
    if not tree.exists():
        tree.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["git", "clone", "-q", str(ROOT), str(tree)], check=True)
        subprocess.run(["git", "-C", str(tree), "checkout", "-q", name], check=True)
    return tree


def compared(before: Path, names: list[str], rounds: int, least: Mapping[str, float]) -> Outcome:
    trees = {"before": before, "now": ROOT}
    rates: dict[str, dict[str, list[float]]] = {
        name: {what: [] for what in trees} for name in names
    }
    others = dict.fromkeys(names, 0.0)
    for number in range(rounds):
        order = [*trees][:: 1 if number % 2 else -1]
        for name in names:
            for what in order:
                row = measured(name, trees[what], WORK / f"in-turn-{what}")
                rates[name][what].append(row["events_per_s"])
                others[name] = max(others[name], row["cpu_others"])
            last = ", ".join(f"{what} {rates[name][what][-1]:,.0f}" for what in trees)
            print(f"round {number + 1} of {rounds}: {name}: {last} events/s", flush=True)
    rows = [row_of(name, rates[name]) | {"cpu_others": others[name]} for name in names]
    bars = [Bar(f"ratio of {row['what']}", row["ratio"], least[row["what"]]) for row in rows]
    figures = {"least_ratio": min(row["ratio"] for row in rows), "calibration": calibrate()}
    notes = ["events/s after the first batch, medians; each: the rounds' own, before and now"]
    return Outcome("in_turn", rows, figures, bars, {"rounds": rounds}, notes)


def measured(name: str, tree: Path, work: Path) -> dict[str, Any]:
    """Runs a load on the code in a tree; returns its row."""
    script = str(ROOT / "bench" / "in_turn_run.py")
    done = subprocess.run(
        [sys.executable, "-P", script, name, str(work), str(tree)],
        env=os.environ | {"PYTHONPATH": f"{tree}{os.pathsep}{tree / 'src'}"},
        cwd=tree,
        stdout=subprocess.PIPE,
        check=True,
    )
    row: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return row


def row_of(name: str, rates: dict[str, list[float]]) -> dict[str, Any]:
    before, now = median(rates["before"]), median(rates["now"])
    each = "; ".join(
        f"{old:,.0f} {new:,.0f}" for old, new in zip(rates["before"], rates["now"], strict=True)
    )
    return {"what": name, "ratio": now / before, "before": before, "now": now, "each": each}


if __name__ == "__main__":
    sys.exit(main())
