"""The charts of the documentation: SVG that shows what it was given."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from docs.charts import Chart, Marker, Series, bar_chart, line_chart, svg

SVG = "{http://www.w3.org/2000/svg}"
BLUE, ORANGE = "#0072b2", "#d55e00"
"""The first two colours."""


def rates(points: list[tuple[float, float | None]] | None = None, **how: object) -> Chart:
    known = Series("measured", points or [(1, 10), (2, 40), (4, 20)])
    bars = Series("ranges", [(1, 15), (4, 25)], "points", ranges=[(12, 18), (20, 30)])
    return line_chart([known, bars], title="Rates", x_label="keys", y_label="events/s", **how)  # type: ignore[arg-type]


def words(picture: str) -> list[str]:
    return [text.text or "" for text in ElementTree.fromstring(picture).iter(f"{SVG}text")]


def paths(picture: str, style: str) -> list[str]:
    """What is drawn in a style, in the order in which it is drawn."""
    every = ElementTree.fromstring(picture).iter(f"{SVG}path")
    return [path.get("d", "") for path in every if style in path.get("style", "")]


def corners(path: str) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in re.findall(r"[ML] (\S+) (\S+)", path)]


def test_a_line_chart_says_what_it_shows() -> None:
    """Its title, the labels and ticks of both axes, the legend and the labels of markers are text
    of a well-formed picture."""
    markers = [Marker("y", 50, "bar: 50"), Marker("x", 3, "killed <&>")]
    said = words(svg([rates(markers=markers)]))
    expected = ["Rates", "keys", "events/s", "measured", "ranges", "bar: 50", "killed <&>"]
    for word in (*expected, "1", "4", "10", "50"):
        assert word in said


def test_a_greater_figure_stands_higher() -> None:
    """The line goes through its points: up where figures grow, to the right where x grows."""
    line = paths(svg([rates()]), f"fill: none; stroke: {BLUE}")[0]
    (x1, y1), (x2, y2), (x3, y3) = corners(line)
    assert x1 < x2 < x3
    assert y2 < y3 < y1


def test_a_missing_figure_breaks_the_line() -> None:
    """Where y is None the line ends and begins anew."""
    picture = svg([rates([(1, 1), (2, 2), (3, None), (4, 3), (5, 2)])])
    line = paths(picture, f"fill: none; stroke: {BLUE}")[0]
    assert re.findall("[ML]", line) == ["M", "L", "M", "L"]


def test_numbers_are_written_as_people_write_them() -> None:
    """Thousands are set apart, integers have no decimals, and a log scale has few ticks."""
    said = words(svg([rates([(1, 1), (2, 30_000)], y_zero=True)]))
    assert "30,000" in said
    assert not [word for word in said if word.endswith(".0")]
    said = words(svg([rates([(1, 0.001), (4, 20_000)], y_log=True)]))
    assert {"0.001", "10,000"} <= set(said)
    assert "20,000" not in said


def test_a_log_scale_has_no_place_for_zero() -> None:
    """The error says what must be."""
    with pytest.raises(ValueError, match="must be over 0; got 0"):
        svg([rates([(1, 0.0), (2, 3)], y_log=True)])


@pytest.mark.parametrize("stacked", [False, True])
def test_bars_are_as_high_as_their_figures(stacked: bool) -> None:
    """Heights are proportional to the figures, side by side or stacked, and None is no bar."""
    values: dict[str, list[float | None]] = {"one": [1, 3], "two": [2, None]}
    picture = svg(
        [bar_chart(["a", "b"], values, title="t", y_label="y", x_label="x", stacked=stacked)]
    )
    blue, orange = (
        [corners(path) for path in paths(picture, f"fill: {colour}; stroke: #ffffff")]
        for colour in (BLUE, ORANGE)
    )
    blue, orange = blue[:2], orange[:1]  # the rest is the legend
    heights = [
        max(y for _, y in bar) - min(y for _, y in bar) for bar in (blue[0], orange[0], blue[1])
    ]
    assert [height / heights[0] for height in heights] == pytest.approx([1, 2, 3], rel=0.01)
    assert (blue[0][0][0] == orange[0][0][0]) == stacked


def test_bars_that_do_not_fit_their_groups_are_refused() -> None:
    """There must be a value for each group. The error names the series."""
    with pytest.raises(ValueError, match="'one' must have a value for each of 2"):
        bar_chart(["a", "b"], {"one": [1]}, title="t", y_label="y")


def test_the_same_figures_give_the_same_text() -> None:
    """The figures alone decide: there is no date and no random id."""
    assert svg([rates(x_log=True)]) == svg([rates(x_log=True)])
    assert svg([rates(x_log=True)]) != svg([rates()])
    assert "date" not in svg([rates()])


def test_a_picture_holds_each_chart_whole() -> None:
    """Several charts are one picture, two in a row, with the words of each."""
    charts = [rates(), rates(y_log=True), rates()]
    whole, one = (ElementTree.fromstring(svg(some)) for some in (charts, charts[:1]))
    assert (whole.get("width"), whole.get("height")) == ("840pt", "480pt")
    assert (one.get("width"), one.get("height")) == ("540pt", "285pt")
    assert words(svg(charts)).count("Rates") == 3
