"""Draws the stress test's result: Figure 6 of S4, the paper's and ours."""

from __future__ import annotations

from typing import Any

from docs.charts import Chart, Marker, Series, line_chart, svg


def pictures(found: dict[str, Any]) -> dict[str, str]:
    """Each picture by its file's name, as SVG."""
    return {"ctr-error.svg": svg(error(found))}


def part(found: dict[str, Any], name: str) -> str:
    """The part of a page under `figures:ctr.NAME`: the picture of that name."""
    return f"![Relative error by the rate](../pictures/ctr-{name}.svg)\n"


def error(found: dict[str, Any]) -> list[Chart]:
    """The relative error by the rate, and the highest rate that held."""
    sent = [row for row in found["rows"] if row["rate"] is not None]
    ours = sorted((row["rate"], row["error_percent"]) for row in sent)
    paper = [(row["rate"], row["paper_percent"]) for row in sent if "paper_percent" in row]
    highest = found["figures"]["highest_per_s"]
    return [
        line_chart(
            [Series("S4, 8 servers", paper), Series("Millstream, 2 cores", ours)],
            title="Relative error of click-through rates",
            x_label="events/s",
            y_label="%",
            y_zero=True,
            markers=[Marker("x", highest, "the highest rate that held")] if highest else [],
        )
    ]
