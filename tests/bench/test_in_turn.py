"""Two commits in turn: the bars that are asked for."""

from __future__ import annotations

import pytest

from bench.in_turn import LEAST, bars_of
from bench.in_turn_run import LOADS


def test_a_load_has_its_own_bar_or_that_of_all() -> None:
    """Without any it may not be slower than before."""
    assert bars_of([]) == dict.fromkeys(LOADS, LEAST)
    bars = bars_of(["2.0", "keyed_updates, arrival=1.5"])
    assert bars.keys() == LOADS.keys()
    assert bars["keyed_updates, arrival"] == 1.5
    assert bars["aggregates, sum"] == bars["batch across keys"] == bars["HTTP intake"] == 2.0


@pytest.mark.parametrize("word", ["fast", "zipf=2", "HTTP intake="])
def test_a_bar_of_no_load_is_refused(word: str) -> None:
    """With what it may be."""
    with pytest.raises(ValueError, match="--least"):
        bars_of([word])
