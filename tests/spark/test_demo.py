"""`make demo`, ended by force and started again."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from millstream.stores.home import Home
from millstream.stores.reader import SlateReader

pytestmark = pytest.mark.spark
ROOT = Path(__file__).parent.parent.parent
SPELLINGS = {
    "Walmart": r"wal-?mart",
    "Best Buy": r"best ?buy",
    "JCPenney": r"j\.?c\.? ?penney",
    "Target": r"target",
    "Macy's": r"macy'?s",
    "Sam's Club": r"sam'?s club",
}


def start(store: Path, seconds: int) -> subprocess.Popen[str]:
    """The demo in a process group of its own, its JVM included."""
    return subprocess.Popen(
        [sys.executable, "-m", "examples.demo", "--seconds", str(seconds), "--store", str(store)],
        cwd=ROOT,
        env={k: v for k, v in os.environ.items() if not k.startswith("MILLSTREAM_")},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def kill_after_a_few_batches(demo: subprocess.Popen[str], store: Path) -> None:
    deadline = time.monotonic() + 200
    try:
        while not (store / "progress").exists() or Home.open(store).committed() < 2:
            assert time.monotonic() < deadline, "no batch was committed"
            assert demo.poll() is None, demo.communicate()[0]
            time.sleep(0.05)
    finally:
        os.killpg(demo.pid, signal.SIGKILL)
        demo.communicate()


def counts(store: Path) -> dict[str, int]:
    with SlateReader(store) as reader:
        return {slate.key: slate.value["count"] for slate in reader.scan("count")}


def recount(store: Path) -> Counter[str]:
    """The check-ins of each retailer, from the input files alone."""
    lines = (line for f in (store / "checkins").glob("*.json") for line in f.open())
    venues = Counter(json.loads(line)["venue"] for line in lines)
    found: Counter[str] = Counter()
    for venue, number in venues.items():
        for retailer, spelling in SPELLINGS.items():
            if re.search(spelling, venue, re.IGNORECASE):
                found[retailer] += number
    return found


def test_the_counts_go_on_after_a_kill(tmp_path: Path) -> None:
    """Killed with its JVM in the middle and started again, the demo ends with exactly the check-ins
    of both runs counted, none lost and none twice, and has told what it found at the start."""
    store = tmp_path / "retail-demo"
    kill_after_a_few_batches(start(store, 0), store)
    before, files = counts(store), len(list((store / "checkins").glob("*.json")))
    assert sum(before.values()) > 0
    again = start(store, 3)
    said, _ = again.communicate(timeout=200)
    assert again.returncode == 0, said
    assert len(list((store / "checkins").glob("*.json"))) > files
    assert counts(store) == recount(store)
    assert "There are counts from before" in said
    for retailer, number in before.items():
        assert re.search(rf"^    {re.escape(retailer)} +{number:,}$", said, re.MULTILINE)
    assert f"slates get count Walmart --store {store}" in said
    assert "Traceback" not in said
