"""The example of aggregates, over generated data, against plain Python of its own."""

from __future__ import annotations

from collections import defaultdict

import millstream as ms
from examples import generate, retail_counts


def test_retail_counts() -> None:
    """Each retailer has its check-ins exactly, and its visitors about as many as there were."""
    records = list(generate.checkins(3_000, 5))
    run = ms.testing.run(retail_counts.app, {"checkins": records})
    users: defaultdict[str, list[str]] = defaultdict(list)
    for record in records:
        for retailer in retail_counts.RETAILERS:
            if retailer.lower() in record["venue"].lower():
                users[retailer].append(record["user"])
    assert len(users) > 2
    assert run.dead_letters == []
    assert run.slates("hits") == {key: {"count": len(users[key])} for key in sorted(users)}
    for retailer, slate in run.slates("visitors").items():
        assert abs(slate["distinct"] - len(set(users[retailer]))) <= 0.1 * slate["distinct"]
