"""Charts of the documentation, drawn by matplotlib, as SVG text.

    rate = line_chart([Series("measured", [(1, 10), (2, 20)])], title="Rate", x_label="keys",
                      y_label="events/s")
    svg([rate]), svg([rate, another])

The same figures give the same text, so that a test can compare a picture with what would be drawn.
Colours are those of Okabe and Ito, which the colour-blind tell apart; each series also has a mark
and a dash of its own.
"""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import matplotlib
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

Point = tuple[float, float | None]
"""x and y; y is None where the line is broken."""
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#a64d79", "#8a6d00", "#4b4bb5", "#57606a")
_DASHES = ("-", (0, (6, 3)), (0, (2, 2)), (0, (8, 2, 2, 2)), (0, (4, 2)), (0, (12, 4)), (0, (1, 3)))
_MARKS = ("o", "s", "^", "D", "v", "P", "X")
_INCH = 96
"""Pixels of a page in an inch."""
_LETTER, _LINE = 7.0, 18.0
"""About how wide a letter is, and how high a line of the legend, in pixels."""
_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",  # text stays text: it is searchable, and read aloud
    "svg.hashsalt": "millstream",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Helvetica Neue", "Arial"],
    "font.size": 9.0,
    "text.color": "#1f2328",
    "axes.labelcolor": "#1f2328",
    "axes.edgecolor": "#6e7781",
    "axes.titlesize": 10.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "grid.color": "#d8dee4",
    "xtick.color": "#57606a",
    "ytick.color": "#57606a",
    "lines.linewidth": 1.5,
    "lines.markersize": 5.0,
}


@dataclass(frozen=True, slots=True)
class Series:
    """Points under one name, joined by a line or not."""

    name: str
    points: Sequence[Point]
    style: Literal["line", "points", "both"] = "both"
    colour: int | None = None
    """Which colour and mark; if left out, its place among the series."""
    ranges: Sequence[tuple[float, float]] = ()
    """The ends of a vertical bar through each point."""


@dataclass(frozen=True, slots=True)
class Marker:
    """A line across the chart at a value of an axis, with a label: a bar, or a known value."""

    axis: Literal["x", "y"]
    at: float
    label: str


@dataclass(frozen=True, slots=True)
class Chart:
    """One chart of a picture."""

    draw: Callable[[Axes, int], None]
    """Draws it on axes of so many pixels."""
    wide: bool = False


def line_chart(
    series: Sequence[Series],
    *,
    title: str,
    x_label: str,
    y_label: str,
    x_log: bool = False,
    y_log: bool = False,
    y_zero: bool = False,
    markers: Sequence[Marker] = (),
    wide: bool = False,
) -> Chart:
    """Lines or points over a numeric axis. `y_zero` makes the y axis reach zero."""

    def draw(axes: Axes, width: int) -> None:
        for number, one in enumerate(series):
            kind = (number if one.colour is None else one.colour) % len(_COLOURS)
            axes.plot(
                [x for x, _ in one.points],
                [math.nan if y is None else y for _, y in one.points],
                label=one.name,
                color=_COLOURS[kind],
                linestyle="none" if one.style == "points" else _DASHES[kind],
                marker="none" if one.style == "line" else _MARKS[kind],
                clip_on=False,
            )
            for (x, _), (low, high) in zip(one.points, one.ranges, strict=bool(one.ranges)):
                axes.plot([x, x], [low, high], color=_COLOURS[kind], linewidth=1.0, marker="_")
        _scale(axes, "x", log=x_log)
        if not x_log and all(float(x).is_integer() for one in series for x, _ in one.points):
            axes.xaxis.set_major_locator(MaxNLocator(10, steps=[1, 2, 5, 10], integer=True))
        _scale(axes, "y", log=y_log)
        if y_zero:
            axes.set_ylim(bottom=min(0.0, axes.dataLim.y0))
        _label(axes, title, x_label, y_label, [one.name for one in series], markers, width)

    return Chart(draw, wide)


def bar_chart(
    groups: Sequence[str],
    values: Mapping[str, Sequence[float | None]],
    *,
    title: str,
    y_label: str,
    x_label: str = "",
    stacked: bool = False,
    markers: Sequence[Marker] = (),
    wide: bool = False,
) -> Chart:
    """Bars in groups: for each name one value a group, side by side or one upon the other.

    None is a bar that is not there. A marker may be on the y axis only.
    """
    for name, bars in values.items():
        if len(bars) != len(groups):
            raise ValueError(f"{name!r} must have a value for each of {len(groups)}; got {bars!r}")

    def draw(axes: Axes, width: int) -> None:
        wide = 0.72 if stacked else 0.72 / len(values)
        tops = [0.0] * len(groups)
        for number, (name, bars) in enumerate(values.items()):
            shift = 0.0 if stacked else (number + 0.5) * wide - 0.36
            there = [(place, value) for place, value in enumerate(bars) if value is not None]
            axes.bar(
                [place + shift for place, _ in there],
                [value for _, value in there],
                wide,
                bottom=[tops[place] for place, _ in there] if stacked else None,
                label=name,
                color=_COLOURS[number % len(_COLOURS)],
                edgecolor="white",
            )
            for place, value in there:
                tops[place] += value
        axes.set_xticks(range(len(groups)), groups)
        axes.set_xlim(-0.5, len(groups) - 0.5)
        axes.tick_params(axis="x", length=0)
        _scale(axes, "y", log=False)
        _label(axes, title, x_label, y_label, list(values), markers, width)

    return Chart(draw, wide)


def svg(charts: Sequence[Chart]) -> str:
    """Charts as one picture, two in a row."""
    if len(charts) == 1:
        (chart,) = charts
        columns, width, height = 1, 960 if chart.wide else 720, 380
    else:
        columns, width, height = 2, 560, 320
    rows = math.ceil(len(charts) / columns)
    text = io.StringIO()
    with matplotlib.rc_context(_STYLE):
        size = columns * width / _INCH, rows * height / _INCH
        figure = Figure(figsize=size, layout=ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.1))
        for number, chart in enumerate(charts, 1):
            chart.draw(figure.add_subplot(rows, columns, number), width)
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    _, tag, body = text.getvalue().partition("<svg")  # without the declarations before it
    return "\n".join(line.rstrip() for line in (tag + body).splitlines()) + "\n"


def _scale(axes: Axes, name: Literal["x", "y"], *, log: bool) -> None:
    """Ticks as people write numbers: 20,000 and 0.25; on a log scale 1, 2 and 5 if they are few."""
    axis: Axis = axes.xaxis if name == "x" else axes.yaxis
    low, high = axis.get_data_interval()
    if log:
        if low <= 0:
            raise ValueError(f"a figure on a log scale must be over 0; got {low:g}")
        axes.set(**{f"{name}scale": "log"})
        few = high / low < 1_000
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if few else (1.0,)))
        axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))


def _label(
    axes: Axes,
    title: str,
    x_label: str,
    y_label: str,
    names: Sequence[str],
    markers: Sequence[Marker],
    width: int,
) -> None:
    """The title, below it the legend in as many rows as it needs, the axes' labels, the markers."""
    across = max(1, int((width - 80) / (_LETTER * max(map(len, names)) + 50)))
    axes.legend(
        loc="lower left",
        bbox_to_anchor=(-0.01, 1.0),
        ncols=min(across, len(names)),
        frameon=False,
        borderaxespad=0.2,
        handlelength=2.6,
    )
    axes.set_title(title, pad=_LINE * math.ceil(len(names) / across) * 72 / _INCH + 8)
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)
    for marker in markers:
        _mark(axes, marker)


def _mark(axes: Axes, marker: Marker) -> None:
    line: dict[str, Any] = {"color": "#1f2328", "linewidth": 0.9, "linestyle": (0, (3, 3))}
    label: dict[str, Any] = {"textcoords": "offset points", "fontsize": 8}
    label["bbox"] = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 0.8}
    if marker.axis == "y":
        axes.axhline(marker.at, **line)
        label |= {"xycoords": axes.get_yaxis_transform(), "ha": "right", "va": "bottom"}
        axes.annotate(marker.label, (1.0, marker.at), (-3, 2), **label)
        return
    axes.axvline(marker.at, **line)
    across, _ = axes.transAxes.inverted().transform(axes.transData.transform((marker.at, 1)))
    side, shift = ("left", 4) if across < 0.5 else ("right", -4)
    label |= {"xycoords": axes.get_xaxis_transform(), "ha": side, "va": "top"}
    axes.annotate(marker.label, (marker.at, 1.0), (shift, -2), **label)
