"""Ranges, slides and panes: which pane is in which window."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import millstream as ms
from millstream.windows.span import Span, span_of


@st.composite
def spans(draw: st.DrawFn) -> Span:
    """A span whose pane divides both sizes."""
    pane, slide = draw(st.integers(1, 5)), draw(st.integers(1, 6))
    length = draw(st.integers(slide, 12))
    return Span("records", length * pane, slide * pane, pane)


@given(spans(), st.integers(-100, 100))
def test_a_pane_is_in_the_windows_that_have_it(span: Span, pane: int) -> None:
    """`windows_of` and `panes_of` say the same."""
    near = range(-200, 200)
    assert list(span.windows_of(pane)) == [one for one in near if pane in span.panes_of(one)]


@given(spans(), st.integers(-100, 100), st.integers(-1000, 1000))
def test_a_position_is_in_the_windows_of_its_pane(span: Span, window: int, position: int) -> None:
    """A window's panes hold exactly the positions between its bounds."""
    begin, end = span.bounds(window)
    assert (span.pane_of(position) in span.panes_of(window)) == (begin <= position < end)


def test_the_pane_is_the_slide_or_the_greatest_that_divides() -> None:
    """Left out, windows tumble, and the pane is the slide if it divides the range."""
    assert span_of("time", "10m", None, None, None, None).pane == 600_000_000
    assert span_of("time", "10m", "1m", None, None, None).pane == 60_000_000
    assert span_of("records", 30, 20, None, None, None).pane == 10


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("weeks", 1, None, None, None, None), "by must be one of time, records"),
        (("records", "10", None, None, None, None), "range must be a whole number of records"),
        (("time", 5, None, None, None, None), "range must be a duration"),
        (("records", 0, None, None, None, None), "range must be over 0"),
        (("records", 10, 20, None, None, None), "slide must be no longer than the range"),
        (("records", 10, 5, 2, None, None), "pane must divide the range and the slide"),
        (("records", 10, 5, None, None, 5), "begin must say where the extent begins"),
        (("time", "1s", None, None, "now", None), "begin must be a datetime or microseconds"),
    ],
)
def test_sizes_that_do_not_go_together(given: tuple[object, ...], said: str) -> None:
    """Such sizes are refused, and the error says what is expected."""
    with pytest.raises(ms.DefinitionError, match=said):
        span_of(*given)  # type: ignore[arg-type]
