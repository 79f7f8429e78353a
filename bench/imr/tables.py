"""The tables of docs/papers/imr-evaluation.md, as lines of Markdown. Pure."""

from __future__ import annotations

from bench.experiment_pages import Record, of, shared
from bench.imr import paper
from bench.markdown import count as count_of
from bench.markdown import head
from bench.markdown import row as a_row

SAID = {
    "drawn": "area, drawn",
    "area": "area, earliest",
    "spatial": "(X, 100%)",
    "temporal": "(100%, Y)",
    "full": "everything",
    "error": "error ±5%",
}
POLICIES = {
    "none": "none",
    "cancelling": "only cancelling",
    "order": "shedding in order",
    "drawn": "shedding, drawn",
}


def scaling(found: Record) -> list[str]:
    """Figure 7."""
    rows = of(found, "fig7")
    agents = sorted({row["agents"] for row in rows})
    lines = head("records/s (busy)", [count_of(count, "agent") for count in agents])
    for reducers in sorted({row["reducers"] for row in rows}):
        by = {row["agents"]: row for row in rows if row["reducers"] == reducers}
        cells = [
            f"{by[n]['records_per_s']:,.0f} ({by[n]['busy']:.0%})" if n in by else ""
            for n in agents
        ]
        lines.append(a_row([count_of(reducers, "reducer"), *cells]))
    most = max((row["agent_mib"] for row in rows), default=0.0)
    lines += ["", f"The largest agent had {most:.0f} MiB of memory."]
    return lines


def shedding(found: Record) -> list[str]:
    """Figure 8."""
    names = ["fidelity", "whenever", "in time", "closed after, s", "at most", "never", "closed by"]
    lines = head("processes that burn, policy", names)
    for row in of(found, "fig8"):
        cells = [f"{row[name]:.0%}" for name in ("fidelity", "whenever", "met")]
        cells += [_seconds(row["latency_s"]), _seconds(row["latency_max_s"])]
        cells += [str(row["never"]), row["why"]]
        lines.append(a_row([f"{row['burns']}, {POLICIES[row['policy']]}", *cells]))
    known = shared(found, "fig8", "calibrated")
    if known:
        lines += [
            "",
            f"Alone on its core an agent read {known['capacity']:,.0f} records a second; the log "
            f"grew by {known['rate']:,.0f}. Undisturbed, windows were closed at most "
            f"{known['took']:.2f} s after their end: the latency is {known['latency']:.2f} s.",
        ]
    return lines


def words(found: Record) -> list[str]:
    """Figure 9."""
    return by_part(found, "fig9", {"count_error": "count", "frequency_error": "frequency"})


def clicks(found: Record) -> list[str]:
    """Figure 11."""
    columns = {
        "user_error": "per user",
        "found_user_error": "per user found",
        "total_error": "total",
        "found": "users found",
    }
    return by_part(found, "fig11", columns)


def hdfs(found: Record) -> list[str]:
    """Figure 12."""
    return by_part(found, "fig12", {"rejects": "rejected", "found": "nodes found"})


def failures(found: Record) -> list[str]:
    """Figure 10."""
    names = ["silent: panes/s", "a window, s", "told: panes/s", "a window, s", "gain", "paper"]
    lines = head("servers replaced in each window", names)
    rows = {(row["replaced"], row["told"]): row for row in of(found, "fig10")}
    told = f"{paper.GOODPUT_GAIN[0]:.0%} to {paper.GOODPUT_GAIN[1]:.0%}"
    for count in sorted({count for count, _ in rows}):
        silent, said = rows.get((count, False)), rows.get((count, True))
        if silent and said:
            cells = [f"{silent['goodput']:.2f}", f"{silent['window_s']:.1f}"]
            cells += [f"{said['goodput']:.2f}", f"{said['window_s']:.1f}"]
            gain = said["goodput"] / silent["goodput"] - 1
            lines.append(a_row([count, *cells, f"{gain:+.0%}", told]))
    return lines


def beside(found: Record) -> list[str]:
    """Figure 13."""
    names = ["none: fidelity", "shedding: fidelity", "none: the other's", "shedding: the other's"]
    lines = head("niceness of the agent", names)
    rows = {(row["nice"], row["policy"]): row for row in of(found, "fig13")}
    for nice in sorted({nice for nice, _ in rows}):
        pair = [rows.get((nice, policy)) for policy in ("none", "order")]
        cells = [
            f"{row[name]:.0%}" if row else "" for name in ("fidelity", "other") for row in pair
        ]
        lines.append(a_row([nice, *cells]))
    return lines


def waiting(found: Record) -> list[str]:
    """Figure 9 (c), and the contract's latency."""
    rows = of(found, "waiting")
    lines = head("asked", ["a window, s", "of everything", "panes received", "closed by"])
    full = next((row["window_s"] for row in rows if row["asked"] == "full"), None)
    for row in rows:
        share = f"{row['window_s'] / full:.0%}" if full else ""
        cells = [f"{row['window_s']:.2f}", share, f"{row['fidelity']:.0%}", row["why"]]
        lines.append(a_row([SAID[row["asked"]], *cells]))
    return lines


def click_latency(found: Record) -> list[str]:
    """Figure 11 (c)."""
    return _latency(found, "fig11c")


def hdfs_latency(found: Record) -> list[str]:
    """Figure 12 (b)."""
    return _latency(found, "fig12b")


def _latency(found: Record, experiment: str) -> list[str]:
    """Seconds by specification and part of the data, and as a part of those for everything."""
    rows = of(found, experiment)
    full = next((row["window_s"] for row in rows if row["asked"] == "full"), None)
    lines = head("asked", ["a window, s", "of everything", "panes received", "closed by"])
    for row in rows:
        asked = SAID[row["asked"]]
        said = asked if row["asked"] == "full" else f"{asked}, {row['part']:.0%} of the data"
        share = f"{row['window_s'] / full:.0%}" if full else ""
        cells = [f"{row['window_s']:.2f}", share, f"{row['fidelity']:.0%}", row["why"]]
        lines.append(a_row([said, *cells]))
    return lines


def coverage(found: Record) -> list[str]:
    """The table of how often intervals contain the truth."""
    lines = head("answer", ["how", "intervals", "with the truth in them"])
    for row in of(found, "coverage"):
        lines.append(
            a_row([row["what"], row["how"], f"{row['intervals']:,}", _part(row["covered"])])
        )
    return lines


def contract(found: Record) -> list[str]:
    """The table of how often the error contract held."""
    lines = head("asked", ["windows", "within it", "data read, on average"])
    for row in of(found, "contract"):
        cells = [f"{row['windows']:,}", _part(row["held"]), f"{row['data']:.0%}"]
        lines.append(a_row([row["what"], *cells]))
    return lines


def clocks(found: Record) -> list[str]:
    """The table of the cost of a deviating node to the others."""
    lines = head("the last node", ["closed after, s", "longer by, s", "at most", "fidelity", "by"])
    for row in of(found, "clocks"):
        cells = [f"{row['latency_s']:.2f}", f"{row['longer_s']:+.2f}"]
        cells += [f"{row['latency_max_s']:.2f}", f"{row['fidelity']:.0%}", row["why"]]
        lines.append(a_row([ODD[row["kind"]], *cells]))
    return lines


ODD = {"alike": "is as the others", "idle": "is idle", "ahead": "has its clock an hour ahead"}


def crowd(found: Record) -> list[str]:
    """Many agents on one root."""
    columns = ["windows right", "closed after, s", "requests/s", "server, MiB", "root in all, MiB"]
    lines = head("agents", [*columns, "an agent, MiB", "below the root"])
    for row in of(found, "crowd"):
        cells = [f"{row['right']} of {row['windows']}", f"{row['latency_s']:.2f}"]
        cells += [f"{row['requests_per_s']:.0f}", f"{row['server_mib']:.0f}"]
        cells += [f"{row['root_mib']:.0f}", f"{row['agent_mib']:.0f}", f"{row['below_root']}"]
        lines.append(a_row([row["what"], *cells]))
    return lines


def crossover(found: Record) -> list[str]:
    """Merged anew or moved on."""
    lines = head("slide", ["merged anew, ms", "moved on, ms", "moved / merged"])
    for row in of(found, "crossover"):
        cells = [f"{row['anew_ms']:.2f}", f"{row['moved_ms']:.2f}", f"{row['ratio']:.2f}"]
        lines.append(a_row([f"1/{row['slides']} of the range", *cells]))
    least = found["figures"].get("crossover_slides")
    said = (
        f"Moving is quicker from a slide of 1/{least:.0f} of the range on."
        if least
        else "Moving was quicker for none of them."
    )
    return [*lines, "", said]


def by_part(found: Record, experiment: str, columns: dict[str, str]) -> list[str]:
    """A table of specifications by the part of the data that they ask for."""
    rows = of(found, experiment)
    parts = sorted({row["part"] for row in rows})
    lines = head("asked, error", [f"{one:.0%} of the data" for one in parts])
    for asked in dict.fromkeys(row["asked"] for row in rows):
        by = {row["part"]: row for row in rows if row["asked"] == asked}
        for column, name in columns.items():
            cells = [_part(by[one][column]) if one in by else "" for one in parts]
            lines.append(a_row([f"{SAID[asked]}, {name}", *cells]))
    return lines


def _seconds(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _part(value: float) -> str:
    return f"{100 * value:.1f}%"
