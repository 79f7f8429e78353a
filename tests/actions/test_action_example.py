"""examples/alerts.py over generated data on the reference, against plain Python."""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from pathlib import Path

import pytest

import millstream as ms

EXAMPLES = Path(__file__).parent.parent.parent / "examples"


def test_who_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every user and hour with twenty check-ins or more is reported, once; the graph has no gap."""
    monkeypatch.setattr(sys, "path", [str(EXAMPLES), *sys.path])
    import alerts
    import generate

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert alerts.app.workflow().actions == ("notify",)
    records = list(generate.checkins(5_000, 7))
    hours = Counter((record["user"], record["time"][:13]) for record in records)
    run = ms.testing.run(alerts.app, {"checkins": records})
    found = Counter(event.key for event in run.stream("notify"))
    assert found == Counter(user for (user, _), count in hours.items() if count >= 20)
    assert len(found) > 1
    assert run.dead_letters == []
    assert "--action notify=stderr" in str(alerts.__doc__)
