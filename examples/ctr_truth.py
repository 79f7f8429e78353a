"""The expected result of examples/ctr.py: the click-through rates of serves and clicks, in plain
Python.

Everything is in memory and in the order of its time; there are no slates, batches or timers. Tests
and the stress test (bench/ctr.py) compare the application with it.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

MINUTE = 60_000
HOUR = 60 * MINUTE

Arrival = tuple[str, dict[str, Any]]
"""A source's name and its record."""
Counts = tuple[int, int]
"""Impressions and clicks."""
Rates = dict[tuple[int, str, str], Counts]
"""By the end of the slot (ms), the query and the ad: what the window before it holds."""


@dataclass(frozen=True, slots=True)
class Rules:
    """The heuristics of examples/ctr.py, in milliseconds."""

    within: int = HOUR // 2
    soonest: int = 500
    serves_a_minute: int = 20
    clicks_a_minute: int = 10
    banned: int = HOUR
    slot: int = HOUR
    slots: int = 24


RULES = Rules()


def true_rates(arrivals: Iterable[Arrival], rules: Rules = RULES) -> Rates:
    """The counts of every pair in every window that has ended, from records in time order."""
    by_slot: dict[tuple[str, str], dict[int, list[int]]] = defaultdict(
        lambda: defaultdict(lambda: [0, 0])
    )
    now = 0
    for time, query, ad, kind in _wanted(arrivals, rules):
        by_slot[query, ad][now := time // rules.slot][kind] += 1
    rates: Rates = {}
    for (query, ad), slots in by_slot.items():
        for last in range(min(slots), min(max(slots) + rules.slots, now)):
            inside = [slots[slot] for slot in slots if last - rules.slots < slot <= last]
            if inside:
                impressions, clicks = (sum(slot) for slot in zip(*inside, strict=True))
                rates[(last + 1) * rules.slot, query, ad] = (impressions, clicks)
    return rates


def _wanted(arrivals: Iterable[Arrival], rules: Rules) -> Iterator[tuple[int, str, str, int]]:
    """(time, query, ad, 0 for an impression or 1 for a click) of those that are no bot's."""
    serves: dict[str, tuple[int, str, str, list[str]]] = {}
    recent: deque[str] = deque()
    minutes: dict[str, list[int]] = {}
    banned: dict[str, int] = {}
    for source, record in arrivals:
        time, serve = record["time"], record["serve"]
        while recent and serves[recent[0]][0] < time - rules.within:
            del serves[recent.popleft()]
        if source == "serves":
            serves[serve] = (time, record["user"], record["query"], record["ads"])
            recent.append(serve)
        elif serve not in serves:
            continue
        served, user, query, ads = serves[serve]
        if time < banned.get(user, 0):
            continue
        minute = minutes.setdefault(user, [0, 0, 0])
        if minute[0] != time // MINUTE:
            minute[:] = [time // MINUTE, 0, 0]
        click = source == "clicks"
        minute[1 + click] += 1
        if minute[1 + click] > (rules.clicks_a_minute if click else rules.serves_a_minute):
            banned[user] = time + rules.banned
        elif not click:
            for ad in ads:
                yield time, query, ad, 0
        elif time - served >= rules.soonest and record["ad"] in ads:
            yield time, query, record["ad"], 1


def relative_error(measured: Mapping[Any, Counts], truth: Mapping[Any, Counts]) -> float:
    """The mean over all pairs of |rate - true rate| / true rate; 1 for a pair that is missing.

    >>> relative_error({"a": (10, 1), "b": (10, 5)}, {"a": (10, 1), "b": (10, 4)})
    0.125
    """
    errors = []
    for pair in truth.keys() | measured.keys():
        if pair not in truth or pair not in measured:
            errors.append(1.0)
            continue
        true, rate = _rate(truth[pair]), _rate(measured[pair])
        errors.append(0.0 if rate == true else abs(rate - true) / true if true else 1.0)
    return sum(errors) / len(errors) if errors else 0.0


def _rate(counts: Counts) -> float:
    return counts[1] / counts[0] if counts[0] else 0.0
