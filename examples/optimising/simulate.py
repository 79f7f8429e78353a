"""The closed loop in memory: the application as the reference runs it, and the target system."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

import millstream as ms
from examples.optimising.target import EVERY, OPTIMUM, PARAMETERS, Target, objective

START = 1_793_577_600_000_000
"""A Monday."""
DAY = 144 * EVERY
LONGEST = 60
"""Days after which it is given up."""


@dataclass(frozen=True, slots=True)
class Cycle:
    """The start of an experiment cycle: the parameters on trial, the best known ones, and the
    time."""

    number: int
    day: float
    slices: dict[str, dict[str, float]]
    best: dict[str, float]
    finished: bool
    verdict: dict[str, Any] | None
    """The verdict of the previous cycle."""


def cycles(app: ms.App, seed: int, start: Mapping[str, float] | None = None) -> Iterator[Cycle]:
    """Run the loop until the search is finished, or for the longest time; the cycles in turn."""
    run, target = ms.testing.Run(app, START), Target(seed, START, start)
    run.feed({"starts": [target.hello()]})
    while target.time < START + LONGEST * DAY:
        for event in run.stream("parameters")[target.cycle :]:
            message, day = event.value, (target.time - START) / DAY
            target.apply(message)
            yield Cycle(
                message["cycle"],
                day,
                message["slices"],
                message["best"],
                message["finished"],
                message["after"],
            )
            if message["finished"]:
                return
        run.feed({"events": list(target.run(target.time + EVERY))})
        if run.dead_letters:
            raise ms.FunctionError(str(run.dead_letters[0]))


def off(parameters: Mapping[str, float]) -> float:
    """The distance of the parameters from the optimum, as a fraction of their allowed range."""
    return max(
        abs(parameters[name] - OPTIMUM[name]) / (limits["high"] - limits["low"])
        for name, limits in PARAMETERS.items()
    )


def lost(parameters: Mapping[str, float]) -> float:
    """The fraction of the greatest objective that the parameters lose."""
    return 1 - objective(parameters) / objective(OPTIMUM)


def anywhere(seed: int) -> dict[str, float]:
    """Parameters to start from, drawn at random, not quite at the bounds."""
    random = Random(f"start {seed}")
    return {
        name: round(
            random.uniform(0.95 * axis["low"] + 0.05 * axis["high"], 0.95 * axis["high"]), 2
        )
        for name, axis in PARAMETERS.items()
    }


def main(app: ms.App, arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m examples.optimise",
        description="Find the best parameters of the made-up target system, in memory.",
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seeds", type=int, help="so many runs, each from a start of its own")
    parser.add_argument(
        "--plot", type=Path, help="draw the run into this SVG file, with matplotlib"
    )
    given = parser.parse_args(arguments)
    if given.seeds is not None:
        _several(app, given.seeds)
        return
    seen = []
    for cycle in cycles(app, given.seed):
        print(_line(cycle), flush=True)
        seen.append(cycle)
    print(_found(seen[-1]))
    if given.plot is not None:
        from examples.optimising.plot import drawn

        given.plot.write_text(drawn(seen), encoding="utf-8")
        print(f"drew {given.plot}")


def _several(app: ms.App, seeds: int) -> None:
    print("seed  start                    found                    cycles  days   off  objective")
    ends = []
    for seed in range(1, seeds + 1):
        start = anywhere(seed)
        *_, end = cycles(app, seed, start)
        ends.append(end)
        print(
            f"{seed:>4}  {_named(start):<24} {_named(end.best):<24} {end.number:>6} "
            f"{end.day:>5.1f} {off(end.best):>5.1%}  {objective(end.best):.3f}",
            flush=True,
        )
    for title, figures, form in (
        ("cycles", [end.number for end in ends], ".0f"),
        ("days", [end.day for end in ends], ".1f"),
        ("off the optimum, of the range", [off(end.best) for end in ends], ".1%"),
        ("of the objective forgone", [lost(end.best) for end in ends], ".2%"),
    ):
        print(f"{title}: median {median(figures):{form}}, at most {max(figures):{form}}")
    print(f"finished: {sum(end.finished for end in ends)} of {len(ends)}")


def _line(cycle: Cycle) -> str:
    tried = "  ".join(_named(parameters) for parameters in cycle.slices.values())
    return f"cycle {cycle.number:>3}  day {cycle.day:>4.1f}  {tried}  best {_named(cycle.best)}"


def _found(end: Cycle) -> str:
    return (
        f"{'found' if end.finished else 'given up at'} {_named(end.best)} after {end.number - 1} "
        f"cycles and {end.day:.1f} days; the optimum is {_named(OPTIMUM)}: off by "
        f"{off(end.best):.1%} of the range, {lost(end.best):.2%} of the objective forgone"
    )


def _named(parameters: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {parameters[name]:.2f}" for name in PARAMETERS)
