"""The tables of docs/papers/s4-evaluation.md, as lines of Markdown. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from bench.experiment_pages import Record, of
from bench.experiments import Row
from bench.markdown import count as count_of
from bench.markdown import head
from bench.markdown import row as a_row
from bench.s4 import paper


def scalability(found: Record) -> list[str]:
    """Figures 3 and 4: what Aggregation counted, and what was lost."""
    lines = head("data, workers", [*_keys(found, "files"), "must be", "lost", "doubled"])
    for data, workers, rows in _grid(found):
        cells = [_number(rows.get(keys, {}).get("aggregation")) for keys in _all(found)]
        must = " / ".join(_number(rows[keys]["expected"]) for keys in sorted(rows))
        lost, doubled = (sum(row[name] for row in rows.values()) for name in ("lost", "doubled"))
        lines.append(a_row([f"{data}, {_workers(workers)}", *cells, must, lost, doubled]))
    return lines


def throughput(found: Record) -> list[str]:
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
    return lines


def rates(found: Record) -> list[str]:
    """The table of the words sent over HTTP: at the stated rates, and as fast as they were
    accepted."""
    http = of(found, "http")
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
    return lines


def resources(found: Record) -> list[str]:
    """Tables I to III: what each worker used at the stated rates, beside the paper's."""
    lines = head("workers: worker, rate", [f"{k}: CPU % (paper)" for k in _keys(found, "http")])
    memory = head("workers: worker, rate", [f"{k}: MiB (paper)" for k in _keys(found, "http")])
    http = [row for row in of(found, "http") if row["rate"]]
    for workers in sorted({row["workers"] for row in http}):
        for number in range(1, workers + 1):
            for rate in sorted({row["rate"] for row in http}):
                name = f"{workers}: worker {number}, {rate:,}/s"
                rows = {
                    row["keys"]: row
                    for row in http
                    if (row["workers"], row["rate"]) == (workers, rate)
                }
                node = (workers, number, rate)
                short, keys = f"w{number}", _all(found, "http")
                cores = [_beside(rows, one, f"{short}_cores", paper.CPU, node) for one in keys]
                lines.append(a_row([name, *cores]))
                room = [_beside(rows, one, f"{short}_mib", paper.MEMORY, node) for one in keys]
                memory.append(a_row([name, *room]))
    return [*lines, "", *memory]


def spread(found: Record) -> list[str]:
    """The table of the balance of work: each worker's share of the CPU time, and its tasks."""
    lines = head("data, workers, keys", ["CPU, % of all workers'", "tasks", "most to mean"])
    lines[1] = lines[1].replace("---:|---:|", "---|---|", 1)
    for row in of(found, "files"):
        if row["workers"] > 1:
            cores = _each(row, "cores")
            shares = " / ".join(f"{100 * one / (sum(cores) or 1):.0f}" for one in cores)
            tasks = " / ".join(str(one) for one in _each(row, "tasks"))
            lines.append(a_row([row["what"], shares, tasks, f"{row['spread']:.2f}"]))
    return lines


def faults(found: Record) -> list[str]:
    """Figure 11: workers killed half way, for good."""
    names = ["counted", "must be", "lost", "doubled", "words/s before", "after", "left", "paper"]
    lines = head("killed half way (10 MB)", names)
    for row in of(found, "fault"):
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
    return lines


def returned(found: Record) -> list[str]:
    """The run in which a worker of two dies and comes back."""
    lines = head("in one run", ["seconds", "words/s", "events/s", "of undisturbed"])
    for row in of(found, "returned"):
        cells = [f"{row['seconds']:.0f}", _number(row["words_per_s"])]
        cells += [_number(row["events_per_s"]), f"{row['ratio']:.0%}"]
        lines.append(a_row([row["what"], *cells]))
    last = of(found, "returned")[-1]
    back = "never" if last["back_s"] is None else f"{last['back_s']:.0f} s"
    lines += [
        "",
        f"Of {_number(last['words'])} words with {last['keys']} keys: lost {last['lost']}, "
        f"doubled {last['doubled']}. From the worker's return to the end of the first batch at "
        f"nine tenths of the undisturbed rate: {back}.",
    ]
    return lines


def runs(found: Record) -> list[str]:
    """How much was run."""
    figures = found["figures"]
    return [
        f"{figures['runs']:.0f} runs and phases, {_number(figures['events'])} events of Eleven and "
        "Three."
    ]


def _all(found: Record, kind: str = "files") -> list[int]:
    return sorted({row["keys"] for row in of(found, kind)})


def _keys(found: Record, kind: str) -> list[str]:
    return [count_of(keys, "key") for keys in _all(found, kind)]


def _grid(found: Record) -> Iterable[tuple[str, int, dict[int, Row]]]:
    """Data and workers, with the rows of all keys that were run."""
    files = of(found, "files")
    for data in dict.fromkeys(row["data"] for row in files):
        for workers in sorted({row["workers"] for row in files if row["data"] == data}):
            rows = [r for r in files if (r["data"], r["workers"]) == (data, workers)]
            yield data, workers, {row["keys"]: row for row in rows}


def _beside(
    rows: dict[int, Row],
    keys: int,
    name: str,
    told: dict[tuple[int, int, int], tuple[float, ...]],
    node: tuple[int, int, int],
) -> str:
    """Formats the measured value, with the paper's in brackets, in percent."""
    value = rows.get(keys, {}).get(name)
    if value is None:
        return ""
    shown = f"{100 * value:.0f}" if name.endswith("cores") else _number(value)
    known = told.get(node)
    return f"{shown} ({known[paper.KEYS.index(keys)]:g}%)" if known else shown


def _each(row: Row, what: str) -> list[float]:
    """A column of each worker."""
    names = sorted(name for name in row if name.startswith("w") and name.endswith(f"_{what}"))
    return [row[name] for name in names]


def _workers(count: int) -> str:
    return count_of(count, "worker")


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}"
