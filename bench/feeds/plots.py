"""The evaluation's results as pictures: Figures 4 to 10."""

from __future__ import annotations

from typing import Any

from bench.experiment_pages import Record, cell, of
from bench.feeds.tables import POLICIES
from docs.charts import Chart, Marker, Series, bar_chart, line_chart


def ratios(found: Record) -> list[Chart]:
    """Figure 4: the whole cost, and what of it is the policy's."""
    rows = of(found, "fig4")
    return [
        line_chart(
            [
                Series(policy, [(r["ratio"], r[column]) for r in rows if r["policy"] == policy])
                for policy in POLICIES
            ],
            title=title,
            x_label="queries for each event",
            y_label="µs of CPU a post",
            x_log=True,
            y_log=True,
        )
        for column, title in (
            ("cpu_us", "A post and its queries"),
            ("model_us", "The same by the paper's model"),
        )
    ]


def skews(found: Record) -> list[Chart]:
    """Figure 5."""
    rows = of(found, "fig5")
    factors = sorted({row["factor"] for row in rows})
    names = {row["factor"]: f"{row['events']:.2f}/{row['queries']:.2f}" for row in rows}
    charts = []
    for column, title in (("cpu_us", "A post and its queries"), ("policy_us", "By the policies")):
        values = {
            policy: [cell(rows, column, factor=one, policy=policy) for one in factors]
            for policy in POLICIES
        }
        charts.append(
            bar_chart(
                [names[one] for one in factors],
                values,
                title=f"{title}, by Zipf parameters",
                y_label="µs of CPU a post",
            )
        )
    return charts


def thresholds(found: Record) -> list[Chart]:
    """Figure 6: latency and cost."""
    rows = sorted(of(found, "fig6"), key=lambda row: float(row["threshold"]))
    own = [Marker("x", row["threshold"], "H/L") for row in rows if row["factor"] == 1]
    common: dict[str, Any] = {"x_label": "threshold", "x_log": True, "markers": own}
    latency = [
        Series("mean", [(row["threshold"], row["mean_ms"]) for row in rows]),
        Series("95th percentile", [(row["threshold"], row["p95_ms"]) for row in rows]),
    ]
    cost = [Series("measured", [(row["threshold"], row["cpu_us"]) for row in rows])]
    return [
        line_chart(latency, title="Time of a read", y_label="ms", y_zero=True, **common),
        line_chart(cost, title="A post and its queries", y_label="µs of CPU", **common),
    ]


def pushed(found: Record) -> list[Chart]:
    """Figure 7."""
    rows = sorted(of(found, "fig7"), key=lambda row: float(row["threshold"]))
    series = [
        Series(name, [(row["threshold"], 100 * row[column]) for row in rows])
        for name, column in (
            ("consumers, half pushed", "half"),
            ("consumers, all pushed", "whole"),
            ("queries, all pushed", "queries_whole"),
        )
    ]
    title = "Whose events are pushed"
    return [line_chart(series, title=title, x_label="threshold", y_label="percent", x_log=True)]


def strategies(found: Record) -> list[Chart]:
    """Figure 8."""
    rows = of(found, "fig8")
    charts = []
    for column, title in (("mean_ms", "Mean time of a read"), ("p95_ms", "95th percentile")):
        series = [
            Series(
                strategy,
                sorted((r["cpu_us"], r[column]) for r in rows if r["strategy"] == strategy),
            )
            for strategy in dict.fromkeys(row["strategy"] for row in rows)
        ]
        charts.append(
            line_chart(
                series,
                title=title,
                x_label="µs of CPU a post, with its queries",
                y_label="ms",
            )
        )
    return charts


def fan_outs(found: Record) -> list[Chart]:
    """Figure 9."""
    rows = of(found, "fig9")
    series = [Series("hybrid", [(row["fan_out"], row["cpu_us"]) for row in rows])]
    title = "A post and its queries, by fan-out"
    label = "followers of a producer"
    return [line_chart(series, title=title, x_label=label, y_label="µs of CPU", y_zero=True)]


def flash(found: Record) -> list[Chart]:
    """Figure 10."""
    rows = of(found, "fig10")
    points = [row for row in rows if row["what"] != "all"]
    series = [
        Series(name, [(row["at"], row[column]) for row in points], "line")
        for name, column in (
            ("all", "cpu_ms"),
            ("maintenance", "maintenance_ms"),
            ("queries", "query_ms"),
        )
    ]
    limits = [1.1 * row["before_ms"] for row in rows if row["what"] == "all"]
    markers = [Marker("x", 0.0, "the flash"), *(Marker("y", one, "+10%") for one in limits)]
    title = "Cost of a batch"
    label = "simulated seconds from the flash"
    return [
        line_chart(
            series, title=title, x_label=label, y_label="ms of CPU", y_zero=True, markers=markers
        )
    ]
