"""The calculation of a cluster, and the simulated month that goes with it."""

from __future__ import annotations

from pathlib import Path

from bench.cluster_scale import Costs, HostKind, Load, measured_row_bytes, month, planned


def test_a_lost_host_costs_no_more_than_was_asked_for() -> None:
    """The plan has so many hosts that the others restore a lost one's copies in time, and the
    simulated losses take as long as the plan says, one at a time."""
    load, costs, kind = Load(), Costs(), HostKind()
    plan = planned(load, costs, kind)
    assert plan.restore_s <= load.recovery_seconds
    found = month(plan, load, costs, kind, days=30.0, mtbf_days=300.0, seed=7)
    assert found.losses >= 1
    assert abs(found.longest_s - plan.restore_s) < 0.01
    quicker = planned(Load(recovery_seconds=load.recovery_seconds / 3), costs, kind)
    assert quicker.hosts > plan.hosts


def test_only_seats_of_lost_hosts_move() -> None:
    """Over a month of many losses, whose seats go to others, and back when the host is back."""
    load, costs, kind = Load(), Costs(), HostKind()
    plan = planned(load, costs, kind)
    found = month(plan, load, costs, kind, days=30.0, mtbf_days=30.0, seed=7)
    assert found.losses > 10
    assert found.moved_by_loss >= found.losses * kind.cores
    assert found.strayed == 0
    assert found.worst_spread <= 1  # one more host may be away when one is back
    shorter = month(plan, load, costs, kind, days=5.0, mtbf_days=30.0, seed=7)
    assert shorter.losses < found.losses


def test_dearer_events_and_larger_slates_need_more_hosts() -> None:
    """By their processors, and by their disks."""
    load, kind = Load(recovery_seconds=1e9), HostKind()
    few = planned(load, Costs(), kind).hosts
    assert planned(load, Costs(cpu_us=500.0), kind).hosts > few
    assert planned(load, Costs(slate_bytes=40_000), kind).hosts > few


def test_the_bytes_of_a_changed_row_are_those_of_the_store(tmp_path: Path) -> None:
    """The cost in the calculation is what changes objects take today."""
    assert abs(measured_row_bytes(tmp_path, rows=10_000) - Costs().row_bytes) < 4
