"""`make demo`: started, watched on its page, ended by force, started again and stopped."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from playwright.sync_api import expect
from server.browser import launched, opened

from fault_runs.published_rows import read_log_rows
from millstream.stores.home import log_of
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


def start(store: Path, *flags: str) -> subprocess.Popen[str]:
    """`make demo` in a process group of its own; its JVM, which has another, ends with it."""
    return subprocess.Popen(
        ["make", "demo", f"DEMO=--store {store} --port 0 {' '.join(flags)}"],
        cwd=ROOT,
        env={k: v for k, v in os.environ.items() if not k.startswith("MILLSTREAM_")},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def address(demo: subprocess.Popen[str]) -> str:
    """Where the demo says its page is."""
    assert demo.stdout is not None
    said = []
    for line in demo.stdout:
        said.append(line)
        if found := re.search(r"The live page: +(http://\S+)", line):
            return found[1]
    raise AssertionError("".join(said))


def watch(url: str) -> None:
    """See on the page that a retailer is counted, and that its count moves."""
    with launched() as chromium, opened(chromium, url) as page:
        walmart = page.locator("#slates-list").get_by_text(re.compile(r'"count":'))
        expect(walmart.last).to_be_visible(timeout=120_000)
        before = walmart.last.inner_text()
        expect(walmart.last).not_to_have_text(before, timeout=60_000)


def counts(store: Path) -> dict[str, int]:
    with SlateReader(store) as reader:
        return {slate.key: slate.value["count"] for slate in reader.scan("count")}


def recount(store: Path) -> Counter[str]:
    """The check-ins of each retailer, from the log of what was sent alone."""
    venues = Counter(row["venue"] for row in read_log_rows(log_of(store, "checkins")))
    found: Counter[str] = Counter()
    for venue, number in venues.items():
        for retailer, spelling in SPELLINGS.items():
            if re.search(spelling, venue, re.IGNORECASE):
                found[retailer] += number
    return found


def test_the_counts_go_on_after_a_kill(tmp_path: Path) -> None:
    """The counts move on the page. Killed in the middle and started again, the demo
    ends with exactly the check-ins of both runs counted, none lost and none twice, and has told
    what it found at the start."""
    store = tmp_path / "retail-demo"
    demo = start(store)
    try:
        watch(address(demo))
    finally:
        os.killpg(demo.pid, signal.SIGKILL)
        demo.communicate()
    before, sent = counts(store), sum(1 for _ in read_log_rows(log_of(store, "checkins")))
    assert sum(before.values()) > 0
    again = start(store, "--seconds 3")
    said, _ = again.communicate(timeout=200)
    assert again.returncode == 0, said
    assert sum(1 for _ in read_log_rows(log_of(store, "checkins"))) > sent
    assert counts(store) == recount(store)
    assert "There are counts from before" in said
    for retailer, number in before.items():
        assert re.search(rf"^    {re.escape(retailer)} +{number:,}$", said, re.MULTILINE)
    assert f"slates get count Walmart --store {store}" in said
    assert "Traceback" not in said
