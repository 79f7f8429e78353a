"""The evaluation's results as pictures: Figures 3, 4 and 11, resources, and a worker's return."""

from __future__ import annotations

from itertools import pairwise

from bench.experiment_pages import Record, of
from bench.experiments import Row
from bench.s4 import paper
from docs.charts import Chart, Marker, Series, bar_chart, line_chart


def processed(found: Record) -> list[Chart]:
    """Figure 3: what Aggregation counted, by keys and workers."""
    return _by_keys(found, "aggregation", "Events counted by Aggregation", "events")


def throughput(found: Record) -> list[Chart]:
    """Events of Eleven and Three a second, by keys and workers."""
    return _by_keys(found, "events_per_s", "Events of Eleven and Three a second", "events/s")


def lost(found: Record) -> list[Chart]:
    """Figure 4: the share of events that were lost, over files and at each rate."""

    def percent(row: Row) -> float:
        whole: int = row["three"] + row["eleven"] + row["aggregation"] + row["lost"]
        return 100.0 * int(row["lost"]) / whole

    rows = [*of(found, "files"), *of(found, "http")]
    names = {"10 MB": "10 MB at once", "100 MB": "100 MB at once"}
    values: dict[str, list[float | None]] = {}
    groups = [
        f"{workers}w {keys}k"
        for workers, keys in sorted({(row["workers"], row["keys"]) for row in rows})
    ]
    for row in rows:
        rate = f"{row.get('rate'):,}/s" if row.get("rate") else "over HTTP at once"
        how = names[row["data"]] if "data" in row else rate
        bars = values.setdefault(how, [None] * len(groups))
        bars[groups.index(f"{row['workers']}w {row['keys']}k")] = percent(row)
    return [
        bar_chart(
            groups,
            values,
            title="Events lost, of all that Eleven, Three and Aggregation must count",
            y_label="percent",
            x_label="workers and keys",
            markers=[Marker("y", 1.0, "1 percent"), *_zero(rows)],
            wide=True,
        )
    ]


def resources(found: Record) -> list[Chart]:
    """Tables I to III: CPU of each worker at the stated rates, beside the paper's nodes."""
    http = [row for row in of(found, "http") if row["rate"]]
    charts = []
    for workers in sorted({row["workers"] for row in http}):
        for rate in sorted({row["rate"] for row in http}):
            rows = [row for row in http if (row["workers"], row["rate"]) == (workers, rate)]
            series = []
            for number in range(1, workers + 1):
                cores = f"w{number}_cores"
                points = [(row["keys"], 100 * row[cores]) for row in rows if cores in row]
                series.append(Series(f"worker {number}", points, colour=number - 1))
            for number in range(1, workers + 1):
                told = paper.CPU[workers, number, rate]
                points = list(zip(paper.KEYS, told, strict=True))
                series.append(Series(f"S4 node {number}", points, "points", colour=number + 2))
            title = f"{workers} worker{'s' if workers > 1 else ''}, {rate:,} words/s"
            charts.append(
                line_chart(
                    series,
                    title=f"CPU, {title}",
                    x_label="keys",
                    y_label="percent of a core (S4: of a node)",
                    y_zero=True,
                )
            )
    return charts


def faults(found: Record) -> list[Chart]:
    """Figure 11: what was counted with workers killed half way, divided by their CPU time."""
    files = {
        (row["workers"], row["keys"]): row for row in of(found, "files") if row["data"] == "10 MB"
    }
    columns: list[tuple[str, Row]] = []
    for row in of(found, "fault"):
        whole = files.get((row["workers"], row["keys"]))
        name = f"{row['workers']}w {row['keys']}k"
        if whole is not None and (f"{name}, none", whole) not in columns:
            columns.append((f"{name}, none", whole))
        columns.append((f"{name}, {row['killed']} killed", row))
    most = max(row["workers"] for _, row in columns)
    values: dict[str, list[float | None]] = {}
    for number in range(1, most + 1):
        values[f"worker {number}"] = [_share(row, number) for _, row in columns]
    return [
        bar_chart(
            [name for name, _ in columns],
            values,
            title="Events counted with workers killed half way, divided by the workers' CPU time",
            y_label="events counted by Aggregation",
            x_label="workers, keys, workers killed",
            stacked=True,
            wide=True,
        )
    ]


def returned(found: Record) -> list[Chart]:
    """Words a second, batch by batch, while a worker of two is killed and comes back."""
    line = found["settings"]["measured"]["returned"]["timeline"]
    commits = line["commits"]
    points = [
        (at, (words - before_words) / (at - before))
        for (before, before_words), (at, words) in pairwise(commits)
        if at > before
    ]
    words = {"killed": "one of two killed", "returned": "a worker is back"}
    markers = [Marker("x", line["marks"][name], said) for name, said in words.items()]
    whole = found["figures"]
    title = f"Words a second: {whole['dead_of_two']:.0%} while dead, {whole['returned']:.0%} after"
    return [
        line_chart(
            [Series("words/s, batch by batch", points)],
            title=title,
            x_label="seconds since the first commit",
            y_label="words/s",
            y_zero=True,
            markers=markers,
            wide=True,
        )
    ]


def _by_keys(found: Record, column: str, title: str, y_label: str) -> list[Chart]:
    """A panel for each size of data: groups of keys, a bar for each number of workers."""
    files, charts = of(found, "files"), []
    for data in dict.fromkeys(row["data"] for row in files):
        by = {(row["workers"], row["keys"]): row for row in files if row["data"] == data}
        keys = sorted({key for _, key in by})
        values: dict[str, list[float | None]] = {
            f"{workers} worker{'s' if workers > 1 else ''}": [
                by[workers, key][column] if (workers, key) in by else None for key in keys
            ]
            for workers in sorted({workers for workers, _ in by})
        }
        groups = [f"{key} key{'s' if key > 1 else ''}" for key in keys]
        charts.append(bar_chart(groups, values, title=f"{title}, {data}", y_label=y_label))
    return charts


def _share(row: Row, number: int) -> float | None:
    """A worker's part of what Aggregation counted, by CPU time."""
    names = sorted(name for name in row if name.startswith("w") and name.endswith("_cores"))
    own, total = row.get(f"w{number}_cores"), sum(row[name] for name in names)
    return None if own is None or not total else row["aggregation"] * own / total


def _zero(rows: list[Row]) -> list[Marker]:
    """Returns a label for the empty plot if nothing was lost in any run."""
    return [] if any(row["lost"] for row in rows) else [Marker("y", 0.0, "0 in every run")]
