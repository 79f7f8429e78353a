"""The example of windows over logs, against a plain count of its sample logs."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import millstream as ms
from examples.log_windows import NODES, app

LOGS = Path(__file__).parent.parent / "examples" / "data" / "logs"
MINUTE = 60


def test_every_window_counts_its_requests() -> None:
    """Ten minutes of all servers, every two minutes, whole."""
    records = {
        node: [json.loads(line) for line in (LOGS / node / "1.jsonl").read_text().splitlines()]
        for node in NODES
    }
    run = ms.testing.run(app, records)
    assert run.dead_letters == []
    windows = run.stream("errors.windows")
    assert len(windows) >= 10
    everything = [record for log in records.values() for record in log]
    for window in windows:
        begin, end = (window.value[bound] // 1_000_000 for bound in ("from", "to"))
        assert end - begin == 10 * MINUTE
        inside = [record for record in everything if begin <= record["time"] < end]
        said = {
            one.key: (one.value["value"]["requests"], one.value["value"]["errors"])
            for one in run.stream("errors")
            if one.value["from"] == window.value["from"]
        }
        count = Counter(record["page"] for record in inside)
        errors = Counter(record["page"] for record in inside if record["status"] >= 500)
        assert said == {page: (count[page], errors[page]) for page in count}
        assert window.value["coverage"]["area"] == 1.0
