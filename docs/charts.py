"""Charts as SVG text, with nothing but the standard library.

    line_chart([Series("measured", [(1, 10), (2, 20)])], title="Rate", x_label="keys",
               y_label="events/s")
    bar_chart(["1 worker", "2 workers"], {"processed": [10, 20]}, title="...", y_label="events")

The same figures give the same text, so that a test can compare a picture with what would be drawn.
Colours are those of Okabe and Ito, which the colour-blind tell apart; each series has a mark or a
dash of its own besides. A picture follows the reader's light or dark page.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal

from docs.scales import Scale, scale, shown

Point = tuple[float, float | None] | tuple[float, float, float, float]
"""x and y, y None where the line is broken; or x, y and the ends of a bar through it."""
_LIGHT = ("#0072b2", "#d55e00", "#009e73", "#a64d79", "#8a6d00", "#4b4bb5", "#57606a")
_DARK = ("#56b4e9", "#ff9a4d", "#2fd0a0", "#e39bc4", "#f0e442", "#a5a5ff", "#9ea7b3")
_DASHES = ("", "7 4", "2 3", "9 3 2 3", "4 2", "12 4", "1 4")
_LETTER = 6.7
"""About how wide a letter is."""


@dataclass(frozen=True, slots=True)
class Series:
    """Points under one name, joined by a line or not."""

    name: str
    points: Sequence[Point]
    style: Literal["line", "points", "both"] = "both"
    colour: int | None = None
    """Which colour and mark; its place among the series unless told."""


@dataclass(frozen=True, slots=True)
class Marker:
    """A line across the chart at a figure of an axis, with a word: a bar to hold, a known value."""

    axis: Literal["x", "y"]
    at: float
    label: str


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
    width: int = 720,
    height: int = 380,
) -> str:
    """Lines or points over a numeric axis. `y_zero` makes the y axis reach zero."""
    xs = [point[0] for one in series for point in one.points]
    ys = [y for one in series for point in one.points for y in point[1:] if y is not None]
    xs += [marker.at for marker in markers if marker.axis == "x"]
    ys += [marker.at for marker in markers if marker.axis == "y"]
    kinds = [
        (one.name, n if one.colour is None else one.colour, one.style)
        for n, one in enumerate(series)
    ]
    frame = _Frame(title, x_label, y_label, width, height, kinds)
    y = scale(ys, frame.bottom, frame.top, log=y_log, zero=y_zero)
    left = frame.left_of(y)
    x = scale(xs, left, frame.right, log=x_log, about=7)
    body = [*_y_axis(y, left, frame), *_x_axis(x, frame)]
    for (name, colour, style), one in zip(kinds, series, strict=True):
        body += _drawn(one.points, name, colour % len(_LIGHT), style, x, y)
    body += [line for marker in markers for line in _marker(marker, x, y, frame)]
    return _picture(frame, body)


def bar_chart(
    groups: Sequence[str],
    values: Mapping[str, Sequence[float | None]],
    *,
    title: str,
    y_label: str,
    x_label: str = "",
    stacked: bool = False,
    y_log: bool = False,
    markers: Sequence[Marker] = (),
    width: int = 720,
    height: int = 380,
) -> str:
    """Bars in groups: for each name one value a group, side by side or one upon the other.

    None is a bar that is not there. A marker may be on the y axis only.
    """
    for name, bars in values.items():
        if len(bars) != len(groups):
            raise ValueError(f"{name!r} must have a value for each of {len(groups)}; got {bars!r}")
    if stacked and y_log:
        raise ValueError("stacked bars must be on a linear scale: y_log must be left out")
    known = [value for bars in values.values() for value in bars if value is not None]
    sums = [sum(bars[n] or 0 for bars in values.values()) for n in range(len(groups))]
    ys = [*(sums if stacked else known), *(marker.at for marker in markers)]
    frame = _Frame(
        title, x_label, y_label, width, height, [(name, n, "bar") for n, name in enumerate(values)]
    )
    y = scale(ys, frame.bottom, frame.top, log=y_log, zero=not y_log)
    left = frame.left_of(y)
    room = (frame.right - left) / len(groups)
    wide = room * 0.72 / (1 if stacked else len(values))
    body = [*_y_axis(y, left, frame)]
    for n, group in enumerate(groups):
        centre = left + room * (n + 0.5)
        body.append(_text(centre, frame.bottom + 17, group, "middle"))
        under = 0.0
        for place, (name, bars) in enumerate(values.items()):
            value = bars[n]
            if value is None:
                continue
            begin = under if stacked else (y.low if y_log else 0.0)
            end = begin + value if stacked else value
            at = centre - room * 0.36 + (0 if stacked else place * wide)
            body.append(
                f'<rect class="f{place % len(_LIGHT)}" x="{at + 0.5:.1f}" '
                f'y="{min(y(begin), y(end)):.1f}" width="{max(wide - 1, 1):.1f}" '
                f'height="{abs(y(end) - y(begin)):.1f}">'
                f"<title>{escape(f'{group}, {name}: {shown(value)}')}</title></rect>"
            )
            under = end
    flat = Scale((0.0, 1.0), left, frame.right)
    body += [line for marker in markers for line in _marker(marker, flat, y, frame)]
    return _picture(frame, body)


def panels(*charts: str, columns: int = 1) -> str:
    """Several charts as one picture, in rows of so many."""
    sizes = [tuple(map(int, _SIZE.search(chart).groups())) for chart in charts]  # type: ignore[union-attr]
    rows = [range(n, min(n + columns, len(charts))) for n in range(0, len(charts), columns)]
    placed, down, widest = [], 0, 0
    for row in rows:
        across = 0
        for n in row:
            placed.append(charts[n].replace("<svg ", f'<svg x="{across}" y="{down}" ', 1).strip())
            across += sizes[n][0]
        down += max(sizes[n][1] for n in row)
        widest = max(widest, across)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {widest} {down}" '
    head += f'width="{widest}" height="{down}" role="img">'
    return "\n".join([head, *placed, "</svg>"]) + "\n"


_SIZE = re.compile(r'width="(\d+)" height="(\d+)"')


class _Frame:
    """Where the parts of a chart stand: title, legend in as many rows as it needs, plot, axes."""

    def __init__(
        self,
        title: str,
        x_label: str,
        y_label: str,
        width: int,
        height: int,
        kinds: Sequence[tuple[str, int, str]],
    ) -> None:
        self.title, self.x_label, self.y_label = title, x_label, y_label
        self.width, self.height = width, height
        self.legend: list[str] = []
        across, down = 18.0, 46.0
        for name, colour, style in kinds:
            needs = 46 + _LETTER * len(name)
            if across + needs > width - 10 and across > 18:
                across, down = 18.0, down + 18
            self.legend += _key(across, down, colour % len(_LIGHT), style)
            self.legend.append(_text(across + 30, down + 4, name))
            across += needs
        self.top, self.bottom = down + 18, height - (46 if x_label else 28)
        self.right = width - 24.0

    def left_of(self, y: Scale) -> float:
        """Where the plot begins, beside the figures of the y axis."""
        return 38 + _LETTER * max(map(len, y.labels))


def _key(x: float, y: float, colour: int, style: str) -> Iterator[str]:
    if style == "bar":
        yield f'<rect class="f{colour}" x="{x + 6:.1f}" y="{y - 6:.1f}" width="14" height="12"/>'
        return
    if style != "points":
        yield f'<path class="l{colour}" d="M{x:.1f} {y:.1f} h26"/>'
    if style != "line":
        yield _mark(x + 13, y, colour)


def _drawn(
    points: Sequence[Point], name: str, colour: int, style: str, x: Scale, y: Scale
) -> Iterator[str]:
    """A series: the bars through its points, its line, its marks."""
    for point in points:
        if len(point) == 4:
            at, low, high = x(point[0]), y(point[2]), y(point[3])
            caps = f"M{at - 3:.1f} {low:.1f} h6 M{at - 3:.1f} {high:.1f} h6"
            yield f'<path class="e{colour}" d="M{at:.1f} {low:.1f} V{high:.1f} {caps}"/>'
    if style != "points":
        steps, pen = [], "M"
        for point in points:
            if point[1] is None:
                pen = "M"
                continue
            steps.append(f"{pen}{x(point[0]):.1f} {y(point[1]):.1f}")
            pen = "L"
        yield f'<path class="l{colour}" d="{" ".join(steps)}"/>'
    if style != "line":
        for point in points:
            if point[1] is not None:
                told = f"{name}: {shown(point[0])}, {shown(point[1])}"
                yield _mark(x(point[0]), y(point[1]), colour, f"<title>{escape(told)}</title>")


_MARKS = (
    "M-4 0 a4 4 0 1 0 8 0 a4 4 0 1 0 -8 0",
    "M-4 -4 h8 v8 h-8 z",
    "M0 -5 L5 4 H-5 z",
    "M0 -5 L5 0 L0 5 L-5 0 z",
    "M0 5 L5 -4 H-5 z",
    "M-5 -2 h10 v4 h-10 z",
    "M-2 -5 h4 v10 h-4 z",
)


def _mark(x: float, y: float, colour: int, inside: str = "") -> str:
    at = f'transform="translate({x:.1f} {y:.1f})"'
    return f'<path class="f{colour}" {at} d="{_MARKS[colour]}">{inside}</path>'


def _y_axis(y: Scale, left: float, frame: _Frame) -> Iterator[str]:
    for tick, label in zip(y.ticks, y.labels, strict=True):
        yield f'<path class="grid" d="M{left:.1f} {y(tick):.1f} H{frame.right:.1f}"/>'
        yield _text(left - 7, y(tick) + 4, label, "end", "note")
    yield f'<path class="axis" d="M{left:.1f} {frame.top:.1f} V{frame.bottom} H{frame.right:.1f}"/>'
    middle = (frame.top + frame.bottom) / 2
    yield (
        f'<text text-anchor="middle" transform="translate(17 {middle:.1f}) rotate(-90)">'
        f"{escape(frame.y_label)}</text>"
    )


def _x_axis(x: Scale, frame: _Frame) -> Iterator[str]:
    for tick, label in zip(x.ticks, x.labels, strict=True):
        yield f'<path class="axis" d="M{x(tick):.1f} {frame.bottom} v5"/>'
        yield _text(x(tick), frame.bottom + 17, label, "middle", "note")


def _marker(marker: Marker, x: Scale, y: Scale, frame: _Frame) -> Iterator[str]:
    if marker.axis == "y":
        at = y(marker.at)
        yield f'<path class="marker" d="M{x.start:.1f} {at:.1f} H{x.end:.1f}"/>'
        yield _text(x.end - 4, at - 5, marker.label, "end", "word")
        return
    at = x(marker.at)
    beside = ("start", 5) if at < (x.start + x.end) / 2 else ("end", -5)
    yield f'<path class="marker" d="M{at:.1f} {frame.bottom} V{frame.top:.1f}"/>'
    yield _text(at + beside[1], frame.top + 11, marker.label, beside[0], "word")


def _text(x: float, y: float, words: str, anchor: str = "start", kind: str = "") -> str:
    named = f' class="{kind}"' if kind else ""
    return f'<text{named} text-anchor="{anchor}" x="{x:.1f}" y="{y:.1f}">{escape(words)}</text>'


def _picture(frame: _Frame, body: Sequence[str]) -> str:
    wide, high = frame.width, frame.height
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" width="{wide}" '
        f'height="{high}" role="img" aria-label="{escape(frame.title)}">',
        _STYLE,
        f'<rect class="paper" width="{wide}" height="{high}"/>',
        _text(18, 25, frame.title, kind="title"),
        *frame.legend,
        *body,
    ]
    if frame.x_label:
        parts.append(_text(wide / 2, high - 10, frame.x_label, "middle"))
    return "\n".join([*parts, "</svg>"]) + "\n"


def _colours(colours: Sequence[str]) -> str:
    return " ".join(
        f".l{n}, .e{n} {{ stroke: {one}; }} .f{n} {{ fill: {one}; }}"
        for n, one in enumerate(colours)
    )


_FONT = "ui-sans-serif, system-ui, 'Helvetica Neue', Arial, 'DejaVu Sans', sans-serif"
_LINES = " ".join(
    f".l{n} {{ fill: none; stroke-width: 2; stroke-dasharray: {dash or 'none'}; }} "
    f".e{n} {{ fill: none; stroke-width: 1.3; }}"
    for n, dash in enumerate(_DASHES)
)
_STYLE = f"""<style>
  text {{ font: 12px {_FONT}; fill: #1f2328; }}
  .title {{ font-size: 14px; font-weight: 600; }} .note {{ fill: #57606a; font-size: 11px; }}
  .word {{ font-size: 11px; stroke: #ffffff; stroke-width: 3px; paint-order: stroke; }}
  .paper {{ fill: #ffffff; }} .grid {{ fill: none; stroke: #d8dee4; }}
  .axis {{ fill: none; stroke: #6e7781; }}
  .marker {{ fill: none; stroke: #1f2328; stroke-width: 1.2; stroke-dasharray: 3 3; }}
  {_LINES}
  {_colours(_LIGHT)}
  @media (prefers-color-scheme: dark) {{
    text {{ fill: #e6edf3; }} .note {{ fill: #9ea7b3; }} .word {{ stroke: #0d1117; }}
    .paper {{ fill: #0d1117; }} .grid {{ stroke: #30363d; }} .axis {{ stroke: #8b949e; }}
    .marker {{ stroke: #e6edf3; }}
    {_colours(_DARK)}
  }}
</style>"""
