"""All scenarios, by name, in the order of the table."""

from __future__ import annotations

from fault_runs import (
    damage,
    disk_full,
    driver_killed,
    duplicated,
    executor_killed,
    jvm_killed,
    late_events,
    poison,
    random_kills,
    sinks,
    terminated,
    worker_killed,
)
from fault_runs.agents import cut_off, killed, parent_killed, root_killed
from fault_runs.agents import disk_full as agent_disk_full
from fault_runs.feeds import killed as feeds_killed
from fault_runs.scenario import Scenario

_ALL: tuple[Scenario, ...] = (
    driver_killed.AT_POINTS,
    random_kills.AT_RANDOM,
    worker_killed.KILLED,
    executor_killed.KILLED,
    terminated.TERMINATED,
    jvm_killed.KILLED,
    disk_full.DISK_FULL,
    damage.DAMAGE,
    poison.POISON,
    late_events.CLOCK_SKEW,
    duplicated.DUPLICATED,
    late_events.LATE_EVENTS,
    sinks.FAILS,
    sinks.SLOW,
    killed.KILLED,
    agent_disk_full.DISK_FULL,
    cut_off.CUT_OFF,
    root_killed.ROOT_KILLED,
    parent_killed.PARENT_KILLED,
    feeds_killed.KILLED,
)
SCENARIOS: dict[str, Scenario] = {scenario.name: scenario for scenario in _ALL}
