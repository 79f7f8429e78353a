"""The evaluation's results as pictures: Figures 7 to 13 and what else was measured."""

from __future__ import annotations

from bench.experiment_pages import Record, cell, of
from bench.experiments import Row
from bench.imr import paper
from bench.imr.tables import POLICIES, SAID
from docs.charts import Chart, Marker, Series, bar_chart, line_chart


def scaling(found: Record) -> list[Chart]:
    """Figure 7."""
    rows = of(found, "fig7")
    series = [
        Series(
            f"{reducers} reducer{'s' if reducers > 1 else ''}",
            [(r["agents"], r["records_per_s"]) for r in rows if r["reducers"] == reducers],
        )
        for reducers in sorted({row["reducers"] for row in rows})
    ]
    title = "Records a second by agents and reducers"
    return [line_chart(series, title=title, x_label="agents", y_label="records/s", y_zero=True)]


def shedding(found: Record) -> list[Chart]:
    """Figure 8: (a) latency, (b) fidelity."""
    rows = of(found, "fig8")
    burns = sorted({row["burns"] for row in rows})
    groups = [f"{count} burning" for count in burns]
    latency, fidelity = (
        {
            POLICIES[policy]: [
                cell(rows, burns=count, policy=policy, column=column) for count in burns
            ]
            for policy in dict.fromkeys(row["policy"] for row in rows)
        }
        for column in ("latency_s", "fidelity")
    )
    asked = Marker("y", rows[0]["asked_s"], "the latency that is asked")
    return [
        bar_chart(
            groups,
            latency,
            title="From a window's end until it is closed",
            y_label="seconds, mean",
            markers=[asked],
        ),
        bar_chart(
            groups,
            fidelity,
            title="Fidelity of windows",
            y_label="part of the panes",
        ),
    ]


def words(found: Record) -> list[Chart]:
    """Figure 9 (a) and (b)."""
    rows = of(found, "fig9")
    return [
        _by_part(rows, "count_error", "Error of counts"),
        _by_part(
            rows, "frequency_error", "Error of shares, with its deviation", "frequency_deviation"
        ),
    ]


def clicks(found: Record) -> list[Chart]:
    """Figure 11 (a) and (b), and the error of the total."""
    rows = of(found, "fig11")
    marker = Marker("y", 100 * paper.USER_ERROR, "the paper's, drawn, under half of the data")
    return [
        _by_part(rows, "user_error", "Error of sessions per user", markers=[marker]),
        _by_part(rows, "total_error", "Error of all sessions"),
        _by_part(rows, "found", "Users found"),
    ]


def hdfs(found: Record) -> list[Chart]:
    """Figure 12 (a)."""
    rows = of(found, "fig12")
    return [_by_part(rows, "rejects", "Histograms that differ from the whole ones")]


def failures(found: Record) -> list[Chart]:
    """Figure 10."""
    rows = of(found, "fig10")
    counts = sorted({row["replaced"] for row in rows})
    values = {
        name: [cell(rows, replaced=count, told=told, column="goodput") for count in counts]
        for name, told in (("silent", False), ("told", True))
    }
    groups = [f"{count} replaced" for count in counts]
    title = "Goodput, with and without word of what will not come"
    return [bar_chart(groups, values, title=title, y_label="panes/s")]


def beside(found: Record) -> list[Chart]:
    """Figure 13 (a) and (b)."""
    rows = of(found, "fig13")
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
            )
        )
    return charts


def waiting(found: Record) -> list[Chart]:
    """Figure 9 (c)."""
    rows = of(found, "waiting")
    groups = [SAID[row["asked"]] for row in rows]
    values = {"a window": [row["window_s"] for row in rows]}
    title = "From a window's opening until it is closed"
    return [bar_chart(groups, values, title=title, y_label="seconds, mean")]


def click_latency(found: Record) -> list[Chart]:
    """Figure 11 (c)."""
    return _latency(of(found, "fig11c"))


def hdfs_latency(found: Record) -> list[Chart]:
    """Figure 12 (b)."""
    return _latency(of(found, "fig12b"))


def _latency(rows: list[Row]) -> list[Chart]:
    """The time of a window by the part of the data, a line for each specification."""
    full = [row["window_s"] for row in rows if row["asked"] == "full"]
    series = [
        Series(
            SAID[asked],
            [(100 * row["part"], row["window_s"]) for row in rows if row["asked"] == asked],
        )
        for asked in dict.fromkeys(row["asked"] for row in rows)
        if asked != "full"
    ]
    return [
        line_chart(
            series,
            title="From a window's opening until it is closed",
            x_label="percent of the data",
            y_label="seconds",
            y_zero=True,
            markers=[Marker("y", seconds, "everything") for seconds in full],
        )
    ]


def coverage(found: Record) -> list[Chart]:
    """Intervals that have the truth in them, by what is answered."""
    rows = of(found, "coverage")
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
    return [
        line_chart(
            series,
            title="Intervals of 95% with the truth in them",
            x_label=", ".join(f"{number} {kind}" for number, kind in enumerate(kinds, 1)),
            y_label="percent",
            markers=[Marker("y", 93.0, "93"), Marker("y", 97.0, "97")],
        )
    ]


def crossover(found: Record) -> list[Chart]:
    """Both ways to a window."""
    rows = of(found, "crossover")
    series = [
        Series("merged anew", [(row["slides"], row["anew_ms"]) for row in rows]),
        Series("moved on", [(row["slides"], row["moved_ms"]) for row in rows]),
    ]
    title = "Time to put a window together"
    return [line_chart(series, title=title, x_label="slides in a range", y_label="ms", y_zero=True)]


def _by_part(
    rows: list[Row],
    column: str,
    title: str,
    deviation: str | None = None,
    markers: list[Marker] | None = None,
) -> Chart:
    """A column in percent by the part of the data, a line for each specification."""
    series = []
    for number, asked in enumerate(dict.fromkeys(row["asked"] for row in rows)):
        of = [row for row in rows if row["asked"] == asked]
        aside = number if deviation else 0  # bars through points do not cover each other
        points = [(100 * row["part"] - aside, 100 * row[column]) for row in of]
        ranges = [
            (100 * max(0.0, row[column] - row[deviation]), 100 * (row[column] + row[deviation]))
            for row in of
            if deviation
        ]
        series.append(Series(SAID[asked], points, ranges=ranges))
    return line_chart(
        series,
        title=title,
        x_label="percent of the data",
        y_label="percent",
        y_zero=True,
        markers=markers or [],
    )
