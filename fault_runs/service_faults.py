"""Scenarios that need other real servers, which are fetched the first time."""

from __future__ import annotations

from fault_runs.kafka_killed import kafka_scenarios
from fault_runs.scenario import Scenario
from fault_runs.table_kills import table_scenarios


def service_scenarios(*, short: bool = False) -> dict[str, Scenario]:
    """All such scenarios, by name. `short`, for tests, has few kills in a run, and leaves out
    scenarios that another one covers: from Kafka to Kafka covers the sink."""
    if short:
        known = (*kafka_scenarios(2, 3)[1:], *table_scenarios(4))
    else:
        known = (*kafka_scenarios(), *table_scenarios())
    return {scenario.name: scenario for scenario in known}


SERVICE_SCENARIOS = service_scenarios()
