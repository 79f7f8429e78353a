"""The evaluation's results as Markdown, for docs/papers/s4-evaluation.md. Pure.

`docs/figures.py` asks for a part by its name where the page has `<!-- figures:s4.NAME -->`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from bench.markdown import count as count_of
from bench.markdown import head, picture, text
from bench.markdown import row as a_row
from bench.s4 import paper

Record = dict[str, Any]
Row = dict[str, Any]


def part(found: Record, name: str) -> str:
    """A part of the page, from a record of the case."""
    return PARTS[name](found)


def scalability(found: Record) -> str:
    """Figures 3 and 4: what Aggregation counted, and what was lost."""
    lines = head("data, workers", [*_keys(found, "files"), "must be", "lost", "doubled"])
    for data, workers, rows in _grid(found):
        cells = [_number(rows.get(keys, {}).get("aggregation")) for keys in _all(found)]
        must = " / ".join(_number(rows[keys]["expected"]) for keys in sorted(rows))
        lost, doubled = (sum(row[name] for row in rows.values()) for name in ("lost", "doubled"))
        lines.append(a_row([f"{data}, {_workers(workers)}", *cells, must, lost, doubled]))
    lines += ["", *picture("s4-processed", "Events counted by workers and keys")]
    lines += ["", *picture("s4-lost", "Events lost, in percent")]
    return text(lines)


def throughput(found: Record) -> str:
    """Words a second of the runs over files, and events of Eleven and Three a second."""
    lines = head("words/s (events/s)", _keys(found, "files"))
    for data, workers, rows in _grid(found):
        cells = [
            f"{_number(rows[keys]['words_per_s'])} ({_number(rows[keys]['events_per_s'])})"
            if keys in rows
            else ""
            for keys in _all(found)
        ]
        lines.append(a_row([f"{data}, {_workers(workers)}", *cells]))
    lines += ["", *picture("s4-throughput", "Events a second by workers and keys")]
    return text(lines)


def rates(found: Record) -> str:
    """The table of the words sent over HTTP: at the stated rates, and as fast as they were
    accepted."""
    http = _of(found, "http")
    asked = sorted({row["rate"] for row in http if row["rate"]})
    names = [f"{rate:,} asked: sent, behind" for rate in asked]
    lines = head("workers, keys", [*names, "at once: words/s (events/s)", "lost", "doubled"])
    for workers, keys in sorted({(row["workers"], row["keys"]) for row in http}):
        rows = {r["rate"]: r for r in http if (r["workers"], r["keys"]) == (workers, keys)}
        cells = [
            f"{_number(rows[rate]['sent_per_s'])}/s, {rows[rate]['behind_s']:.2f} s"
            for rate in asked
        ]
        top = rows[0]["words_per_s"]
        cells.append(f"{_number(top)} ({_number(top * 1.5 * keys)})")
        lost = max(row["lost"] for row in rows.values())
        doubled = max(row["doubled"] for row in rows.values())
        lines.append(
            a_row([f"{_workers(workers)}, {count_of(keys, 'key')}", *cells, lost, doubled])
        )
    return text(lines)


def resources(found: Record) -> str:
    """Tables I to III: what each worker used at the stated rates, beside the paper's."""
    lines = head("workers: worker, rate", [f"{k}: CPU % (paper)" for k in _keys(found, "http")])
    memory = head("workers: worker, rate", [f"{k}: MiB (paper)" for k in _keys(found, "http")])
    http = [row for row in _of(found, "http") if row["rate"]]
    for workers in sorted({row["workers"] for row in http}):
        for number in range(1, workers + 1):
            for rate in sorted({row["rate"] for row in http}):
                name = f"{workers}: worker {number}, {rate:,}/s"
                rows = {
                    row["keys"]: row
                    for row in http
                    if (row["workers"], row["rate"]) == (workers, rate)
                }
                of = (workers, number, rate)
                short, keys = f"w{number}", _all(found, "http")
                cores = [_beside(rows, one, f"{short}_cores", paper.CPU, of) for one in keys]
                lines.append(a_row([name, *cores]))
                room = [_beside(rows, one, f"{short}_mib", paper.MEMORY, of) for one in keys]
                memory.append(a_row([name, *room]))
    lines += ["", *memory, "", *picture("s4-resources", "CPU of each worker at the stated rates")]
    return text(lines)


def spread(found: Record) -> str:
    """The table of the balance of work: each worker's share of the CPU time, and its tasks."""
    lines = head("data, workers, keys", ["CPU, % of all workers'", "tasks", "most to mean"])
    lines[1] = lines[1].replace("---:|---:|", "---|---|", 1)
    for row in _of(found, "files"):
        if row["workers"] > 1:
            cores = _each(row, "cores")
            shares = " / ".join(f"{100 * one / (sum(cores) or 1):.0f}" for one in cores)
            tasks = " / ".join(str(one) for one in _each(row, "tasks"))
            lines.append(a_row([row["what"], shares, tasks, f"{row['spread']:.2f}"]))
    return text(lines)


def faults(found: Record) -> str:
    """Figure 11: workers killed half way, for good."""
    names = ["counted", "must be", "lost", "doubled", "words/s before", "after", "left", "paper"]
    lines = head("killed half way (10 MB)", names)
    for row in _of(found, "fault"):
        told = paper.THROUGHPUT_LEFT[row["workers"], row["killed"]]
        lines.append(
            a_row(
                [
                    row["what"],
                    *(_number(row[name]) for name in ("aggregation", "expected")),
                    *(row["lost"], row["doubled"]),
                    *(_number(row[name]) for name in ("before_per_s", "after_per_s")),
                    *(f"{row['ratio']:.0%}", f"{told:.0%}"),
                ]
            )
        )
    lines += ["", *picture("s4-faults", "Events counted under killed workers, by worker")]
    return text(lines)


def returned(found: Record) -> str:
    """The run in which a worker of two dies and comes back."""
    lines = head("in one run", ["seconds", "words/s", "events/s", "of undisturbed"])
    for row in _of(found, "returned"):
        cells = [f"{row['seconds']:.0f}", _number(row["words_per_s"])]
        cells += [_number(row["events_per_s"]), f"{row['ratio']:.0%}"]
        lines.append(a_row([row["what"], *cells]))
    last = _of(found, "returned")[-1]
    back = "never" if last["back_s"] is None else f"{last['back_s']:.0f} s"
    lines += [
        "",
        f"Of {_number(last['words'])} words with {last['keys']} keys: lost {last['lost']}, "
        f"doubled {last['doubled']}. From the worker's return to the end of the first batch at "
        f"nine tenths of the undisturbed rate: {back}.",
        "",
        *picture("s4-returned", "Words a second while a worker dies and comes back"),
    ]
    return text(lines)


def where(found: Record) -> str:
    """The bars, and where all of it was measured."""
    machine = found["machine"]
    bars = "; ".join(
        f"{bar['figure']} {_figure(bar['value'])} (bar {_figure(bar['limit'])}, "
        f"{'held' if bar['held'] else 'missed'})"
        for bar in found["bars"]
    )
    return text(
        [
            f"{found['figures']['runs']:.0f} runs and phases, "
            f"{_number(found['figures']['events'])} events of Eleven and Three: {bars}. "
            f"Commit {found['commit'][:10]}, {machine['cores']} cores ({machine['cpu']}), "
            f"Python {machine['python']}, Java {machine['java']}, Spark {machine['spark']}."
        ]
    )


PARTS: dict[str, Callable[[Record], str]] = {
    "scalability": scalability,
    "throughput": throughput,
    "rates": rates,
    "resources": resources,
    "spread": spread,
    "faults": faults,
    "returned": returned,
    "where": where,
}


def _of(found: Record, kind: str) -> list[Row]:
    rows: list[Row] = found["rows"]
    return [row for row in rows if row["kind"] == kind]


def _all(found: Record, kind: str = "files") -> list[int]:
    return sorted({row["keys"] for row in _of(found, kind)})


def _keys(found: Record, kind: str) -> list[str]:
    return [count_of(keys, "key") for keys in _all(found, kind)]


def _grid(found: Record) -> Iterable[tuple[str, int, dict[int, Row]]]:
    """Data and workers, with the rows of all keys that were run."""
    files = _of(found, "files")
    for data in dict.fromkeys(row["data"] for row in files):
        for workers in sorted({row["workers"] for row in files if row["data"] == data}):
            of = (data, workers)
            yield (
                *of,
                {r["keys"]: r for r in files if (r["data"], r["workers"]) == of},
            )


def _beside(
    rows: dict[int, Row],
    keys: int,
    name: str,
    told: dict[tuple[int, int, int], tuple[float, ...]],
    of: tuple[int, int, int],
) -> str:
    """Formats the measured value, with the paper's in brackets, in percent."""
    value = rows.get(keys, {}).get(name)
    if value is None:
        return ""
    shown = f"{100 * value:.0f}" if name.endswith("cores") else _number(value)
    known = told.get(of)
    return f"{shown} ({known[paper.KEYS.index(keys)]:g}%)" if known else shown


def _each(row: Row, what: str) -> list[float]:
    """A column of each worker."""
    names = sorted(name for name in row if name.startswith("w") and name.endswith(f"_{what}"))
    return [row[name] for name in names]


def _workers(count: int) -> str:
    return count_of(count, "worker")


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}"


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 1_000 or value == int(value) else f"{value:.2f}"
