"""The evaluation's results as pictures: Figures 7 to 13 and what else was measured."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bench.experiment_pages import drawn
from bench.imr import paper
from bench.imr.tables import POLICIES, SAID
from docs.charts import Marker, Series, bar_chart, line_chart, panels

Record = dict[str, Any]
Row = dict[str, Any]
WIDTH, HEIGHT = 560, 320
"""The size of a panel."""


def pictures(found: Record) -> dict[str, str]:
    """Each picture by its file's name, as SVG."""
    return drawn("imr", found, PICTURES)


def scaling(rows: list[Row]) -> str:
    """Figure 7."""
    series = [
        Series(
            f"{reducers} reducer{'s' if reducers > 1 else ''}",
            [(r["agents"], r["records_per_s"]) for r in rows if r["reducers"] == reducers],
        )
        for reducers in sorted({row["reducers"] for row in rows})
    ]
    title = "Records a second by agents and reducers"
    return line_chart(series, title=title, x_label="agents", y_label="records/s", y_zero=True)


def shedding(rows: list[Row]) -> str:
    """Figure 8: (a) latency, (b) fidelity."""
    burns = sorted({row["burns"] for row in rows})
    groups = [f"{count} burning" for count in burns]
    latency, fidelity = (
        {
            POLICIES[policy]: [
                _cell(rows, burns=count, policy=policy, column=column) for count in burns
            ]
            for policy in dict.fromkeys(row["policy"] for row in rows)
        }
        for column in ("latency_s", "fidelity")
    )
    asked = Marker("y", rows[0]["asked_s"], "the latency that is asked")
    return panels(
        bar_chart(
            groups,
            latency,
            title="From a window's end until it is closed",
            y_label="seconds, mean",
            markers=[asked],
            width=WIDTH,
            height=HEIGHT,
        ),
        bar_chart(
            groups,
            fidelity,
            title="Fidelity of windows",
            y_label="part of the panes",
            width=WIDTH,
            height=HEIGHT,
        ),
        columns=2,
    )


def words(rows: list[Row]) -> str:
    """Figure 9 (a) and (b)."""
    return panels(
        _by_part(rows, "count_error", "Error of counts"),
        _by_part(
            rows, "frequency_error", "Error of shares, with its deviation", "frequency_deviation"
        ),
        columns=2,
    )


def clicks(rows: list[Row]) -> str:
    """Figure 11 (a) and (b), and the error of the total."""
    marker = Marker("y", 100 * paper.USER_ERROR, "the paper's, drawn, under half of the data")
    return panels(
        _by_part(rows, "user_error", "Error of sessions per user", markers=[marker]),
        _by_part(rows, "total_error", "Error of all sessions"),
        _by_part(rows, "found", "Users found"),
        columns=2,
    )


def hdfs(rows: list[Row]) -> str:
    """Figure 12 (a)."""
    return _by_part(rows, "rejects", "Histograms that differ from the whole ones")


def failures(rows: list[Row]) -> str:
    """Figure 10."""
    counts = sorted({row["replaced"] for row in rows})
    values = {
        name: [_cell(rows, replaced=count, told=told, column="goodput") for count in counts]
        for name, told in (("silent", False), ("told", True))
    }
    groups = [f"{count} replaced" for count in counts]
    title = "Goodput, with and without word of what will not come"
    return bar_chart(groups, values, title=title, y_label="panes/s")


def beside(rows: list[Row]) -> str:
    """Figure 13 (a) and (b)."""
    charts = []
    for column, title in (
        ("fidelity", "Fidelity of windows"),
        ("other", "The other work, of what it does alone"),
    ):
        series = [
            Series(
                POLICIES[policy],
                [(row["nice"], 100 * row[column]) for row in rows if row["policy"] == policy],
            )
            for policy in ("none", "order")
        ]
        charts.append(
            line_chart(
                series,
                title=title,
                x_label="niceness of the agent",
                y_label="percent",
                y_zero=True,
                width=WIDTH,
                height=HEIGHT,
            )
        )
    return panels(*charts, columns=2)


def waiting(rows: list[Row]) -> str:
    """Figure 9 (c)."""
    groups = [SAID[row["asked"]] for row in rows]
    values = {"a window": [row["window_s"] for row in rows]}
    title = "From a window's opening until it is closed"
    return bar_chart(groups, values, title=title, y_label="seconds, mean")


def example_latency(rows: list[Row]) -> str:
    """Figures 11 (c) and 12 (b)."""
    full = [row["window_s"] for row in rows if row["asked"] == "full"]
    series = [
        Series(
            SAID[asked],
            [(100 * row["part"], row["window_s"]) for row in rows if row["asked"] == asked],
        )
        for asked in dict.fromkeys(row["asked"] for row in rows)
        if asked != "full"
    ]
    return line_chart(
        series,
        title="From a window's opening until it is closed",
        x_label="percent of the data",
        y_label="seconds",
        y_zero=True,
        markers=[Marker("y", seconds, "everything") for seconds in full],
    )


def coverage(rows: list[Row]) -> str:
    """Intervals that have the truth in them, by what is answered."""
    simulated = [row for row in rows if row["how"] == "simulated"]
    kinds = list(dict.fromkeys(row["kind"] for row in simulated))
    series = [
        Series(
            of,
            [
                (kinds.index(row["kind"]) + 1 + number / 10, 100 * row["covered"])
                for row in simulated
                if row["of"] == of
            ],
            "points",
        )
        for number, of in enumerate(dict.fromkeys(row["of"] for row in simulated))
    ]
    return line_chart(
        series,
        title="Intervals of 95% with the truth in them",
        x_label=", ".join(f"{number} {kind}" for number, kind in enumerate(kinds, 1)),
        y_label="percent",
        markers=[Marker("y", 93.0, "93"), Marker("y", 97.0, "97")],
    )


def crossover(rows: list[Row]) -> str:
    """Both ways to a window."""
    series = [
        Series("merged anew", [(row["slides"], row["anew_ms"]) for row in rows]),
        Series("moved on", [(row["slides"], row["moved_ms"]) for row in rows]),
    ]
    title = "Time to put a window together"
    return line_chart(series, title=title, x_label="slides in a range", y_label="ms", y_zero=True)


PICTURES: dict[str, tuple[str, Callable[[list[Row]], str]]] = {
    "scaling": ("fig7", scaling),
    "shedding": ("fig8", shedding),
    "words": ("fig9", words),
    "failures": ("fig10", failures),
    "clicks": ("fig11", clicks),
    "hdfs": ("fig12", hdfs),
    "beside": ("fig13", beside),
    "waiting": ("waiting", waiting),
    "click-latency": ("fig11c", example_latency),
    "hdfs-latency": ("fig12b", example_latency),
    "coverage": ("coverage", coverage),
    "crossover": ("crossover", crossover),
}


def _by_part(
    rows: list[Row],
    column: str,
    title: str,
    deviation: str | None = None,
    markers: list[Marker] | None = None,
) -> str:
    """A column in percent by the part of the data, a line for each specification."""
    series = []
    for number, asked in enumerate(dict.fromkeys(row["asked"] for row in rows)):
        points: list[Any] = []
        for row in rows:
            if row["asked"] == asked:
                at, value = 100 * row["part"], 100 * row[column]
                spread = 100 * row[deviation] if deviation else 0.0
                bar = (at - number, value, max(0.0, value - spread), value + spread)
                points.append(bar if deviation else (at, value))
        series.append(Series(SAID[asked], points))
    return line_chart(
        series,
        title=title,
        x_label="percent of the data",
        y_label="percent",
        y_zero=True,
        markers=markers or [],
        width=WIDTH,
        height=HEIGHT,
    )


def _cell(rows: list[Row], column: str, **wanted: Any) -> float | None:
    """The column of the row that has these values; None if there is none."""
    for row in rows:
        if all(row[name] == value for name, value in wanted.items()):
            found: float | None = row[column]
            return found
    return None
