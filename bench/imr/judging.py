"""The rows of the experiments as figures and bars. Pure.

An experiment that was not run has no figures and no bars.
"""

from __future__ import annotations

from collections.abc import Callable

from bench.experiments import Figures, Judging, Row

HALF = 0.5
NOTES = [
    "fig7: logs that are there at once, words counted over windows of records; busy: of all cores",
    "fig8, fig13: the agent and the other work share one core, all else has the rest; met: windows "
    "that were closed within the latency, which is the undisturbed one; none: neither sheds nor "
    "hears what is closed; never: windows that were not closed when the run was over; fidelity: of "
    "the answers that were in time, none for a window that was late; whenever: of all answers",
    "fig9, fig11, fig12: the panes that a specification asks for, made in this process from "
    "generated logs; how long windows take is measured with agents (waiting, fig11c, fig12b)",
    "fig10: goodput: panes delivered, by the time from the beginning of their windows until those "
    "were closed; told: new agents say where they begin; silent: they do not",
    "clocks: from the end of a window until it was closed, for the windows of the other nodes",
]


def fig7(rows: list[Row]) -> Figures:
    """Efficiency: records a second by busy core with the most agents, of what it is with one."""
    one = {(row["agents"], row["reducers"]): row for row in rows}
    first, two = one.get((1, 1)), one.get((2, 1))
    most = max(rows, key=lambda row: (row["agents"], -row["reducers"]))
    found = {
        "fig7_records_per_s": max(row["records_per_s"] for row in rows),
        "fig7_busy": max(row["busy"] for row in rows),
        "fig7_missing": sum(row["missing"] for row in rows),
        "agent_mib": max(row["agent_mib"] for row in rows),
    }
    if first and two:
        found["fig7_two_to_one"] = two["records_per_s"] / first["records_per_s"]
        found["fig7_efficiency"] = _by_core(most) / _by_core(first)
    return found


def _by_core(row: Row) -> float:
    return float(row["records_per_s"] / row["busy"])


def fig8(rows: list[Row]) -> Figures:
    shed = [row for row in rows if row["policy"] in ("order", "drawn")]
    found = {"fig8_met": sum(r["met"] * r["windows"] for r in shed) / _sum(shed, "windows")}
    none = {row["burns"]: row["fidelity"] for row in rows if row["policy"] == "none"}
    for policy in ("order", "drawn"):
        ratios = [
            row["fidelity"] / max(none[row["burns"]], 0.01)
            for row in rows
            if row["policy"] == policy and row["burns"] in none
        ]
        if ratios:
            found[f"fig8_{policy}_to_none"] = min(ratios)
    return found


def fig9(rows: list[Row]) -> Figures:
    return {
        f"fig9_{row['asked']}_frequency_error": row["frequency_error"]
        for row in rows
        if row["part"] == HALF
    }


def fig10(rows: list[Row]) -> Figures:
    goodput = {(row["replaced"], row["told"]): row["goodput"] for row in rows}
    gains = [
        goodput[count, True] / goodput[count, False] - 1
        for count, told in goodput
        if told and (count, False) in goodput
    ]
    return {"fig10_gain": min(gains)} if gains else {}


def fig11(rows: list[Row]) -> Figures:
    half = {row["asked"]: row for row in rows if row["part"] == HALF}
    found = {f"fig11_{asked}_user_error": row["user_error"] for asked, row in half.items()}
    if "drawn" in half:
        found["fig11_drawn_total_error"] = half["drawn"]["total_error"]
    return found


def fig12(rows: list[Row]) -> Figures:
    return {f"fig12_{row['asked']}_rejects": row["rejects"] for row in rows if row["part"] == HALF}


def fig13(rows: list[Row]) -> Figures:
    by = {(row["nice"], row["policy"]): row for row in rows}
    nicest = max(nice for nice, _ in by)
    return {
        "fig13_other_equal": by[0, "order"]["other"] if (0, "order") in by else 0.0,
        "fig13_other_nicest": by[nicest, "order"]["other"],
        "fig13_fidelity_equal": by[0, "order"]["fidelity"] if (0, "order") in by else 0.0,
    }


def waiting(rows: list[Row]) -> Figures:
    took = {row["asked"]: row["window_s"] for row in rows}
    return {
        f"waiting_{asked}": seconds / took["full"]
        for asked, seconds in took.items()
        if asked != "full" and took.get("full")
    }


def fig11c(rows: list[Row]) -> Figures:
    return _of_everything("fig11c", rows)


def fig12b(rows: list[Row]) -> Figures:
    return _of_everything("fig12b", rows)


def _of_everything(name: str, rows: list[Row]) -> Figures:
    """Returns the time of a window with half of the data, relative to one with all of it."""
    full = next((row["window_s"] for row in rows if row["asked"] == "full"), None)
    half = {row["asked"]: row["window_s"] for row in rows if row["part"] == HALF}
    return {f"{name}_{asked}": seconds / full for asked, seconds in half.items()} if full else {}


def coverage(rows: list[Row]) -> Figures:
    simulated = [row["covered"] for row in rows if row["how"] == "simulated"]
    panes = [row for row in rows if row["how"] == "panes"]
    found: Figures = {}
    if simulated:
        found |= {"covered_least": min(simulated), "covered_most": max(simulated)}
    if panes:
        total = _sum(panes, "intervals")
        found["covered_panes"] = sum(r["covered"] * r["intervals"] for r in panes) / total
    return found


def contract(rows: list[Row]) -> Figures:
    return {"contract_held": min(row["held"] for row in rows)}


def clocks(rows: list[Row]) -> Figures:
    return {f"{row['kind']}_longer_s": row["longer_s"] for row in rows if row["kind"] != "alike"}


def crowd(rows: list[Row]) -> Figures:
    """Counts the windows that were not right, and the server's requests and memory, by way."""
    found = {"crowd_wrong": float(sum(row["windows"] - row["right"] for row in rows))}
    for row in rows:
        found[f"crowd_{row['kind']}_requests_per_s"] = row["requests_per_s"]
        found[f"crowd_{row['kind']}_server_mib"] = row["server_mib"]
    return found


def crossover(rows: list[Row]) -> Figures:
    """The fewest slides in a range from which on moving is quicker."""
    slower = [row["slides"] for row in rows if row["ratio"] >= 1]
    quicker = [row["slides"] for row in rows if row["slides"] > max(slower, default=0)]
    return {"crossover_slides": min(quicker)} if quicker else {}


OF: dict[str, Callable[[list[Row]], Figures]] = {
    "fig7": fig7,
    "fig8": fig8,
    "fig9": fig9,
    "fig10": fig10,
    "fig11": fig11,
    "fig12": fig12,
    "fig13": fig13,
    "waiting": waiting,
    "fig11c": fig11c,
    "fig12b": fig12b,
    "coverage": coverage,
    "contract": contract,
    "clocks": clocks,
    "crowd": crowd,
    "crossover": crossover,
}
BARS: dict[str, tuple[float, bool]] = {
    "failed": (0, False),
    "fig7_busy": (0.9, True),
    "fig7_efficiency": (0.9, True),
    "fig7_missing": (0, False),
    "agent_mib": (60, False),
    "fig8_met": (0.99, True),
    "fig8_order_to_none": (1.5, True),
    "fig8_drawn_to_none": (1.5, True),
    "fig10_gain": (0.6, True),
    "fig11_drawn_user_error": (0.2, False),
    "fig11_drawn_total_error": (0.05, False),
    "covered_least": (0.93, True),
    "covered_most": (0.97, False),
    "contract_held": (0.95, True),
    "waiting_error": (0.7, False),
    "crowd_wrong": (0, False),
    "idle_longer_s": (0.25, False),
    "ahead_longer_s": (0.25, False),
}


JUDGING = Judging(OF, BARS, NOTES)


def _sum(rows: list[Row], name: str) -> float:
    return float(sum(row[name] for row in rows))
