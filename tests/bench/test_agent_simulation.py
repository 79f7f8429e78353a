"""Agents and their root in one process, with a made-up clock and network: answers are the truth's.

A seed that fails is run again with `python -m pytest tests/bench/test_agent_simulation.py -k SEED`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import millstream
from bench.agent_simulation.cases import deaths, rough
from bench.agent_simulation.drawn_scenario import drawn
from bench.agent_simulation.report import costs, rows
from bench.agent_simulation.scenario import FaultPlan, Scenario
from bench.agent_simulation.simulation import simulate
from bench.agent_simulation.truth import answers, problems
from millstream.trees.news_board import NewsBoard
from millstream.windows.board.scoreboard import Scoreboard
from millstream.windows.panes import pane_ledger

SRC = Path(millstream.__file__).parent.parent


def test_without_faults_every_window_is_complete_and_every_count_is_right() -> None:
    """With 50 nodes, every window has all panes and counts each line once."""
    here = simulate(Scenario(nodes=50, windows=3))
    assert problems(here) == []
    said = answers(here)
    for window in here.windows:
        assert said[window].summary["why"] == "complete"
        lines = here.truth.keys[window]
        assert {key: one["value"]["count"] for key, one in said[window].keys.items()} == lines


@pytest.mark.parametrize("seed", range(4))
def test_whatever_goes_wrong_each_record_is_counted_once_or_accounted_for(seed: int) -> None:
    """Nodes, links, clocks, the root: the seed draws what goes wrong."""
    assert problems(simulate(drawn(seed, nodes=25, windows=5))) == []


def test_the_death_of_a_parent_costs_its_children_two_windows_at_most() -> None:
    """With a latency of one window, parents killed one by one and many at once."""
    here = simulate(replace(deaths(40, windows=6), fan_out=5, capacity=10))
    assert problems(here) == []
    found = costs(here)
    assert found["parents_dead"] > 3
    assert found["children"] > 10
    assert found["missed_max"] <= 2


def test_a_node_that_is_dead_lacks_in_its_windows() -> None:
    """Missing lines are counted as missing: an agent that never returns is in no later window."""
    plan = FaultPlan(leaves=3, never_back=1.0)
    here = simulate(Scenario(nodes=20, windows=6, faults=plan))
    assert problems(here) == []
    assert len(here.faults.never_back) == 3
    last = answers(here)[here.windows[-1]].summary["accounts"]
    assert here.nodes.keys() - last.keys() == here.faults.never_back


TROUBLED = replace(deaths(30, windows=4), fan_out=4, capacity=8)


def test_a_root_that_takes_panes_twice_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the ledger and the scoreboard forget accepted panes, the check reports it."""
    monkeypatch.setattr(pane_ledger, "has_any", lambda runs, pane, until: False)
    monkeypatch.setattr(Scoreboard, "knows", lambda self, pane, until, nodes: False)
    assert problems(simulate(TROUBLED)) != []


def test_agents_that_forget_panes_too_early_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """If agents treat every pane as accepted, panes of dead parents are lost, and the check reports
    it."""
    monkeypatch.setattr(NewsBoard, "accepted", lambda self, node, pane, until: True)
    assert problems(simulate(TROUBLED)) != []


def test_the_same_seed_is_the_same_run() -> None:
    """All is drawn by the seed: what was said, when, and by how many messages."""
    scenario = rough(20, seed=7, windows=2)
    one, other = simulate(scenario), simulate(scenario)
    another = simulate(replace(scenario, seed=8))
    assert one.world.steps == other.world.steps != another.world.steps
    assert one.root.answers() == other.root.answers() != another.root.answers()
    assert rows(one, "") == rows(other, "")


RUN = """
from dataclasses import replace
from bench.agent_simulation.cases import rough
from bench.agent_simulation.scenario import FaultPlan
from bench.agent_simulation.simulation import simulate
deep = {"fan_out": 3, "capacity": 3, "serving": 0.5, "faults": FaultPlan(parents=6, rack=3)}
here = simulate(replace(rough(30, seed=0, windows=2), **deep))
print(here.world.steps, here.root.answers())
"""


def test_a_seed_is_the_same_run_in_every_process() -> None:
    """Nothing hangs on the order of sets, which is another one in each process."""
    runs = [
        subprocess.run(
            [sys.executable, "-c", RUN],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": f"{SRC}:{SRC.parent}"},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert runs[0] == runs[1] != ""
