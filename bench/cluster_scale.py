"""A model of a cluster: from measured costs to hosts, requests and recovery.

    python -m bench.cluster_scale [--events 1e6] [--slates 2e9] [--cpu-us 6.55] [--seed 7]
    python -m bench.cluster_scale --measure-row

First it calculates how many hosts a rate and a number of slates need, and the load on the place.
Then it simulates a month: hosts are lost and come back, the seats move as the driver would move
them (with `seat_plan` itself), and copies are restored from bases. It prints how long seats
were without their copies, how many moved without need, and how even they were.

With `--measure-row` it measures the bytes of a changed row, by a run in this process.

The costs are those of docs/performance.md; the options set others.
"""

from __future__ import annotations

import argparse
from collections import Counter
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import NamedTuple

from bench import data
from bench.on_millstream import counter
from bench.table import table
from millstream.cli.store import mirrored
from millstream.driver.batch_plan.seat_plan import EVENING_SECONDS, SeatPlan
from millstream.driver.in_process import run
from millstream.settings.settings import Settings
from millstream.stores.reader import SlateReader

HOUR, DAY = 3_600.0, 86_400.0


@dataclass(frozen=True, slots=True)
class Costs:
    """Costs measured on one machine. docs/cluster/scale.md has the source of each."""

    cpu_us: float = 6.55
    """Processor time of an event, all processes of the application together, in microseconds."""
    row_bytes: int = 38
    """Bytes of a changed row in a changes object."""
    slate_bytes: int = 383
    """Bytes of a slate on a host's disk, with its index and LMDB's free space."""
    restore_rows: float = 205_264.0
    """Rows that a host restores a second, from bases in the place."""


@dataclass(frozen=True, slots=True)
class Load:
    """The load of the cluster."""

    events: float = 1e6
    """Events a second."""
    slates: float = 2e9
    batch_seconds: float = 1.0
    distinct: float = 0.7
    """Changed rows for each event of a batch: some events have the same key."""
    recovery_seconds: float = 30.0
    """Seconds that batches may wait for the copies of a lost host."""


@dataclass(frozen=True, slots=True)
class HostKind:
    """A type of machine."""

    cores: int = 16
    disk_gb: float = 1_900.0
    busy: float = 0.6
    """The share of its cores to use: the rest is for lost hosts and for peaks."""


class Plan(NamedTuple):
    """A cluster for a load."""

    hosts: int
    shards: int
    cores_used: float
    disk_gb_a_host: float
    changes_mb_s: float
    requests_s: float
    restore_s: float
    """Seconds to restore the shards of a lost host on all others."""


def planned(load: Load, costs: Costs, kind: HostKind) -> Plan:
    """The smallest cluster for a load."""
    cores = load.events * costs.cpu_us / 1e6
    by_cpu = ceil(cores / (kind.cores * kind.busy))
    by_disk = ceil(load.slates * costs.slate_bytes / (kind.disk_gb * 1e9 * 0.7))
    hosts = max(3, by_cpu, by_disk)
    while _restore_seconds(hosts, load, costs, kind) > load.recovery_seconds:
        hosts += 1
    tasks = hosts * kind.cores
    shards = 2 ** (2 * tasks - 1).bit_length()
    rows = load.events * load.distinct
    return Plan(
        hosts,
        shards,
        cores,
        load.slates * costs.slate_bytes / hosts / 1e9,
        rows * costs.row_bytes / 1e6,
        (tasks + 3) / load.batch_seconds,
        _restore_seconds(hosts, load, costs, kind),
    )


def _restore_seconds(hosts: int, load: Load, costs: Costs, kind: HostKind) -> float:
    """Seconds until the copies of a lost host are restored. Its seats, one for each core, go to the
    others as a whole, and the host that gets the most takes the longest."""
    most = ceil(kind.cores / (hosts - 1))
    return most * load.slates / (hosts * kind.cores) / costs.restore_rows


class Month(NamedTuple):
    """The result of a simulated month."""

    losses: int
    moved_by_loss: int
    """Seats that moved because of a loss."""
    strayed: int
    """Of those, seats of hosts that were not lost. Must be 0."""
    moved_to_even: int
    longest_s: float
    """The longest restore: seconds until the last copy of a lost host was restored."""
    away: float
    """The share of the time that a seat was without its copies, over all seats."""
    worst_spread: int
    """The largest difference in seats between two hosts, once evened out."""


def month(
    plan: Plan,
    load: Load,
    costs: Costs,
    kind: HostKind,
    *,
    days: float,
    mtbf_days: float,
    seed: int,
) -> Month:
    """Simulates a month: each host is lost at random, about every `mtbf_days`, and is back after an
    hour."""
    random = Random(seed)
    tasks = plan.hosts * kind.cores
    names = [f"host{number}" for number in range(plan.hosts)]
    turns = sorted(
        turn
        for name in names
        for lost in _losses(random, days * DAY, mtbf_days * DAY)
        for turn in ((lost, "lost", name), (lost + HOUR, "back", name))
    )
    hosts, seats = dict.fromkeys(names, 1), SeatPlan(tasks)
    seats.changed(hosts, 0.0)
    found = Month(0, 0, 0, 0, 0.0, 0.0, 0)
    for at, turn, name in turns:
        before = seats.seats
        if turn == "back":
            hosts[name] = 1
            found = _evened(seats, hosts, at, found)
        elif len(hosts) > 1:
            del hosts[name]
            seats.changed(hosts, at)
            moved = [new for old, new in zip(before, seats.seats, strict=True) if old != new]
            strayed = sum(
                old != new for old, new in zip(before, seats.seats, strict=True) if old != name
            )
            most = max(Counter(moved).values(), default=0)
            seconds = most * load.slates / tasks / costs.restore_rows
            found = found._replace(
                losses=found.losses + 1,
                moved_by_loss=found.moved_by_loss + len(moved),
                strayed=found.strayed + strayed,
                longest_s=max(found.longest_s, seconds),
                away=found.away + len(moved) * seconds / 2 / (tasks * days * DAY),
            )
    return found


def _losses(random: Random, until: float, mean: float) -> list[float]:
    at, found = random.expovariate(1 / mean), []
    while at < until:
        found.append(at)
        at += 2 * HOUR + random.expovariate(1 / mean)
    return found


def _evened(seats: SeatPlan, hosts: dict[str, int], at: float, found: Month) -> Month:
    """Even out the seats after a host is back, a few at a time."""
    moved = steps = 0
    before = seats.seats
    while seats.changed(hosts, at + EVENING_SECONDS * (steps + 1)):
        moved += sum(old != new for old, new in zip(before, seats.seats, strict=True))
        before, steps = seats.seats, steps + 1
    counts = Counter(seats.seats)
    spread = max(counts[host] for host in hosts) - min(counts[host] for host in hosts)
    return found._replace(
        moved_to_even=found.moved_to_even + moved, worst_spread=max(found.worst_spread, spread)
    )


def measured_row_bytes(folder: Path, rows: int = 30_000) -> float:
    """The bytes of a changed row in the changes objects of a batch of the benchmark's counter."""
    source = data.uniform(folder / "data", rows, 20 * rows, 1)
    settings = Settings.of(
        "bench",
        folder / "work",
        {"events": f"json:{source}"},
        shards=64,
        tasks=2,
        batch_bytes=1 << 30,
        place=f"shared:{folder / 'place'}",
        cache=str(folder / "cache"),
        available_now=True,
    )
    run(counter("arrival"), settings)
    with mirrored(f"shared:{folder / 'place'}") as store, SlateReader(store) as reader:
        changed = sum(1 for _ in reader.scan("count"))
    objects = (path for path in (folder / "place" / "changes").rglob("*") if path.is_file())
    return sum(path.stat().st_size for path in objects) / changed


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.cluster_scale", description=__doc__)
    parser.add_argument("--events", type=float, default=Load().events, help="a second")
    parser.add_argument("--slates", type=float, default=Load().slates)
    parser.add_argument("--cpu-us", type=float, default=Costs().cpu_us)
    parser.add_argument("--slate-bytes", type=int, default=Costs().slate_bytes)
    parser.add_argument("--restore-rows", type=float, default=Costs().restore_rows)
    parser.add_argument("--cores", type=int, default=HostKind().cores)
    parser.add_argument("--mtbf-days", type=float, default=30.0)
    parser.add_argument("--recovery-seconds", type=float, default=Load().recovery_seconds)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--measure-row", action="store_true", help="measure a row's bytes")
    given = parser.parse_args()
    if given.measure_row:
        with TemporaryDirectory() as folder:
            print(f"{measured_row_bytes(Path(folder)):.1f} bytes a changed row")
        return
    load = Load(given.events, given.slates, recovery_seconds=given.recovery_seconds)
    costs = Costs(given.cpu_us, slate_bytes=given.slate_bytes, restore_rows=given.restore_rows)
    kind = HostKind(given.cores)
    plan = planned(load, costs, kind)
    print(
        table([{"what": name, "value": round(value, 2)} for name, value in plan._asdict().items()])
    )
    rows = [
        {
            "seed": seed,
            **month(
                plan, load, costs, kind, days=30, mtbf_days=given.mtbf_days, seed=seed
            )._asdict(),
        }
        for seed in range(given.seed, given.seed + 3)
    ]
    print()
    print(table(rows))


if __name__ == "__main__":
    main()
