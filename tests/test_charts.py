"""The charts of the documentation: SVG that says what it was given."""

from __future__ import annotations

import doctest
import math
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docs import scales
from docs.charts import Marker, Series, bar_chart, line_chart, panels
from docs.scales import scale

SVG = "{http://www.w3.org/2000/svg}"
FIGURES = st.floats(min_value=-1e9, max_value=1e9, allow_nan=False).map(lambda x: round(x, 6))


def rates(**how: object) -> str:
    series = [
        Series("measured", [(1, 10), (2, 40), (4, 20)]),
        Series("bars", [(1, 15, 12, 18), (4, 25, 20, 30)], "points"),
    ]
    return line_chart(series, title="Rates", x_label="keys", y_label="events/s", **how)  # type: ignore[arg-type]


def words(picture: str) -> list[str]:
    return [text.text or "" for text in ElementTree.fromstring(picture).iter(f"{SVG}text")]


def test_the_examples_of_scales_hold() -> None:
    """The doctests of the scales."""
    assert doctest.testmod(scales).failed == 0


@given(st.lists(FIGURES, min_size=1), st.booleans(), st.integers(2, 12))
def test_a_linear_scale_has_room_for_its_figures(
    figures: list[float], zero: bool, about: int
) -> None:
    """Every figure is between the first and the last tick, in order, and ticks stay few."""
    made = scale(figures, 300, 20, zero=zero, about=about)
    edge = (made.high - made.low) * 1e-6
    assert made.low - edge <= min(figures)
    assert max(figures) <= made.high + edge
    assert 2 <= len(made.ticks) <= 2 * about + 3
    assert len(set(made.labels)) == len(made.ticks)
    if zero:
        assert made.low <= 0 <= made.high
    assert (made(made.low), made(made.high)) == (300, 20)


@given(st.lists(st.floats(1e-6, 1e12), min_size=1))
def test_a_log_scale_has_room_for_its_figures(figures: list[float]) -> None:
    """Every figure is within, and a figure ten times as great is the same way further on."""
    made = scale(figures, 0, 100, log=True)
    assert made.low <= min(figures) * 1.001
    assert max(figures) <= made.high * 1.001
    steps = [made(10.0**n) - made(10.0 ** (n - 1)) for n in range(-3, 4)]
    assert steps == pytest.approx([steps[0]] * len(steps))


@pytest.mark.parametrize(
    ("figures", "log", "says"),
    [([], False, "must have figures"), ([math.nan], False, "finite"), ([0.0], True, "over 0")],
)
def test_what_has_no_place_is_refused(figures: list[float], log: bool, says: str) -> None:
    """An empty series, a value that is not finite, or zero on a log scale is an error that says
    so."""
    with pytest.raises(ValueError, match=says):
        scale(figures, 0, 1, log=log)


def test_a_line_chart_says_what_it_shows() -> None:
    """Well-formed, with its title, both axes' names and ticks, the legend and markers' words."""
    picture = rates(markers=[Marker("y", 50, "bar: 50"), Marker("x", 3, "killed <&>")])
    said = words(picture)
    expected = ["Rates", "keys", "events/s", "measured", "bars", "bar: 50", "killed <&>"]
    for word in (*expected, "1.0", "4.0", "10", "50"):
        assert word in said
    root = ElementTree.fromstring(picture)
    titles = [title.text for title in root.iter(f"{SVG}title")]
    assert "measured: 2, 40" in titles
    assert "bars: 4, 25" in titles


def test_a_greater_figure_stands_higher() -> None:
    """The line goes through its points: up where figures grow, to the right where x grows."""
    root = ElementTree.fromstring(rates())
    lines = [path.get("d", "") for path in root.iter(f"{SVG}path") if path.get("class") == "l0"]
    steps = lines[-1].replace("M", "").split(" L")
    (x1, y1), (x2, y2), (x3, y3) = [map(float, step.split()) for step in steps]
    assert x1 < x2 < x3
    assert y2 < y3 < y1


def test_a_missing_figure_breaks_the_line() -> None:
    """Where y is None the line ends and begins anew."""
    gap = Series("gap", [(1, 1), (2, None), (3, 3), (4, 2)], "line")
    picture = line_chart([gap], title="t", x_label="x", y_label="y")
    root = ElementTree.fromstring(picture)
    line = [path.get("d", "") for path in root.iter(f"{SVG}path") if path.get("class") == "l0"][-1]
    assert (line.count("M"), line.count("L")) == (2, 1)


@pytest.mark.parametrize("stacked", [False, True])
def test_bars_are_as_high_as_their_figures(stacked: bool) -> None:
    """Heights are proportional to the figures, side by side or stacked, and None is no bar."""
    picture = bar_chart(
        ["a", "b"],
        {"one": [1, 3], "two": [2, None]},
        title="t",
        y_label="events",
        x_label="key",
        stacked=stacked,
    )
    bars = [
        rect
        for rect in ElementTree.fromstring(picture).iter(f"{SVG}rect")
        if rect.find(f"{SVG}title") is not None
    ]
    heights = [float(bar.get("height", "")) for bar in bars]
    assert [height / heights[0] for height in heights] == pytest.approx([1, 2, 3], rel=0.01)
    lefts = [float(bar.get("x", "")) for bar in bars]
    assert (lefts[0] == lefts[1]) == stacked


def test_bars_that_do_not_fit_their_groups_are_refused() -> None:
    """There must be a value for each group. The error names the series."""
    with pytest.raises(ValueError, match="'one' must have a value for each of 2"):
        bar_chart(["a", "b"], {"one": [1]}, title="t", y_label="y")


def test_the_same_figures_give_the_same_text() -> None:
    """Text alone decides: no ids, no times, no order of a set."""
    assert rates(x_log=True) == rates(x_log=True)
    assert rates(x_log=True) != rates()


def test_panels_hold_each_chart_whole() -> None:
    """Charts side by side and below one another, in one picture as large as all of them."""
    whole = panels(rates(), rates(y_log=True), rates(), columns=2)
    root = ElementTree.fromstring(whole)
    assert (root.get("width"), root.get("height")) == ("1440", "760")
    places = [(part.get("x"), part.get("y")) for part in root.findall(f"{SVG}svg")]
    assert places == [("0", "0"), ("720", "0"), ("0", "380")]
    assert words(whole) == words(rates()) + words(rates(y_log=True)) + words(rates())
