"""The panes that a window receives, by specification, and its answer."""

from __future__ import annotations

import pytest

from examples.imr.incomplete import answers, drawn, panes_of, spatial, temporal, whole
from examples.skewed_words import word_count
from millstream.windows.coverage import Coverage

NODES = ("a", "b", "c", "d")
PANES = range(20, 30)


@pytest.mark.parametrize("part", [0.1, 0.5, 0.7, 1.0])
def test_a_specification_is_just_met(part: float) -> None:
    """Each set of panes has the coverage that was asked for, and in its own direction."""
    for cells, what in (
        (drawn(NODES, PANES, part, seed=3), "area"),
        (spatial(NODES, PANES, part), "whole_panes"),
        (temporal(NODES, PANES, part, seed=3), "whole_nodes"),
    ):
        got = getattr(Coverage(NODES, PANES, dict.fromkeys(cells, "data")), what)
        assert part <= got < part + 1 / (4 if what == "whole_nodes" else 10)


def test_drawn_panes_are_drawn_by_each_node_and_by_the_seed() -> None:
    """Nodes draw different panes, another seed draws others, and less is a part of more."""
    half = drawn(NODES, PANES, 0.5, seed=3)
    assert len({frozenset(p for n, p in half if n == node) for node in NODES}) > 1
    assert half != drawn(NODES, PANES, 0.5, seed=4)
    assert drawn(NODES, PANES, 0.3, seed=3) < half < whole(NODES, PANES)


def test_a_window_is_put_together_from_what_was_received() -> None:
    """The counts of two nodes' panes, whole and in part."""
    job = word_count(range=4, pane=2)
    logs = {
        "a": [({"line": "x"}, n) for n in range(4)],
        "b": [({"line": "x y"}, n) for n in range(4)],
    }
    panes = panes_of(job, logs)
    assert answers(job, panes, whole(("a", "b"), range(2))) == {"x": 8, "y": 4}
    assert answers(job, panes, {("a", 0), ("b", 1)}) == {"x": 4, "y": 2}
    assert answers(job, panes, set()) == {}
