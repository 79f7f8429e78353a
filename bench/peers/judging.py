"""The figures and bars of the peers' benchmark, from the rows of each load. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bench.experiments import Judging

Row = dict[str, Any]
Figures = dict[str, float]


def _figures(load: str) -> Callable[[list[Row]], Figures]:
    return lambda rows: figures(load, rows)


def figures(load: str, rows: list[Row]) -> Figures:
    """Returns the number of failed rows, and Millstream's rate relative to each other row: warm,
    and of whole runs.

    A system's built-in count has no ratio, but it may be the fastest whole run of the peers;
    Millstream's own is left out.
    """
    measured = {row["name"]: row for row in rows if "failed" not in row}
    found = {f"{load}_failed": float(len(rows) - len(measured))}
    ours = measured.pop("millstream", None)
    if ours is None:
        return found
    for name, row in measured.items():
        if name.endswith("_built_in"):
            continue
        if ours["events_per_s"] and row["events_per_s"]:
            found[f"{load}_warm_to_{name}"] = ours["events_per_s"] / row["events_per_s"]
        if name != "loops":
            found[f"{load}_whole_to_{name}"] = row["whole_s"] / ours["whole_s"]
    aside = {"loops", "millstream_built_in"}
    peers = [row["whole_s"] for name, row in measured.items() if name not in aside]
    if peers:
        found[f"{load}_whole_to_fastest"] = min(peers) / ours["whole_s"]
    return found


def latencies(rows: list[Row]) -> Figures:
    """The latencies of all who were measured."""
    return {
        f"live_{name}_{row['name']}": row[name]
        for row in rows
        if "failed" not in row
        for name in ("p50_s", "p99_s")
    }


LIMITS = {
    "uniform_warm_to_loops": (0.45, True),
    "uniform_warm_to_pathway": (3.0, True),
    "uniform_warm_to_bytewax": (5.0, True),
    "uniform_whole_to_fastest": (1.0, True),
}
NOTES = (
    "LOAD_warm_to_PEER, LOAD_whole_to_PEER: how many times Millstream's rate is the peer's, once "
    "warm and from start to end; whole_to_fastest: beside the fastest of the peers, their own "
    "counts included, loops aside",
    "batches: how often a run has made its state durable; Bytewax's are snapshots",
    "a row whose answers are wrong has failed, and has no figures",
)
LOADS = ("uniform", "zipf", "rules", "q4", "q5", "q7", "q11")
JUDGING = Judging({**{name: _figures(name) for name in LOADS}, "live": latencies}, LIMITS, NOTES)
