"""More seeds of the simulation of agents than the tests have by default (`bench.agent_simulation`).

`MILLSTREAM_AGENT_SEEDS=17 make test-faults` runs one seed, `100:200` a hundred. The quick part of
the fault runs (`SEEDS=2`) has ten.
"""

from __future__ import annotations

import os

import pytest

from bench.agent_simulation.cases import rough
from bench.agent_simulation.drawn_scenario import drawn
from bench.agent_simulation.simulation import simulate
from bench.agent_simulation.truth import problems

pytestmark = pytest.mark.faults
QUICK = int(os.environ.get("MILLSTREAM_FAULT_SEEDS", "20")) <= 2
ASKED = os.environ.get("MILLSTREAM_AGENT_SEEDS", "100:110" if QUICK else "100:150").partition(":")
SEEDS = range(int(ASKED[0]), int(ASKED[2] or int(ASKED[0]) + 1))


@pytest.mark.parametrize("seed", SEEDS)
def test_each_record_is_counted_once_or_accounted_for(seed: int) -> None:
    """It holds for any nodes, links, clocks and faults that the seed draws."""
    assert problems(simulate(drawn(seed))) == []


@pytest.mark.parametrize("seed", SEEDS[: 1 if QUICK else 3])
def test_so_it_is_with_many_nodes(seed: int) -> None:
    """Three hundred nodes and much that goes wrong."""
    assert problems(simulate(rough(300, seed=seed))) == []
