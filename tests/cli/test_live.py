"""The live lines of a run that goes on, on a terminal of our own."""

import io
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from millstream.cli.live import EventRate, LiveLines
from millstream.driver.report import BatchSummary
from millstream.stores.home import held


def report(batch: int, total: int, **more: object) -> BatchSummary:
    known = {
        "batch": batch, "events": 1000, "late": 0, "dead_letters": 0, "seconds": 0.1,
        "total_events": total, "total_late": 0, "total_dead_letters": 0, "bytes_done": 1,
        "bytes_total": 1, "waiting": 0, "horizon": None, "lane": "one-task", "latency": 0.214,
        "behind": 7, "slates": 1204,
    }  # fmt: skip
    return BatchSummary(**(known | more))


def live(clock) -> LiveLines:
    console = Console(file=io.StringIO(), force_terminal=True, width=120)
    return LiveLines(lambda: "retail is running: http://127.0.0.1:8470", clock, console)


def test_two_lines():
    """The lines have the address, then whether the run has started, then the rate, the latency, the
    lag, the slates and the dead letters."""
    now = [0.0]
    lines = live(lambda: now[0])
    try:
        assert lines.lines().plain.endswith("\nstarting ...")
        lines.running()
        assert lines.lines().plain.endswith("\nwaiting for the first batch ...")
        lines(report(0, 1000))
        now[0] = 2.0
        lines(report(1, 5000, events=4000))
        assert lines.lines().plain == (
            "retail is running: http://127.0.0.1:8470\n"
            "2,500 events/s   latency 0.21 s   behind 7   slates 1,204   dead letters 0   batch 1"
        )
        lines(report(2, 5000, events=0, total_dead_letters=3, total_late=2, waiting=9))
        assert "dead letters 3   late 2   waiting 9   batch 2" in lines.lines().plain
    finally:
        lines.close()


def test_the_rate_falls_when_nothing_comes():
    """The rate is that of the last five seconds, and falls to nothing after them."""
    now = [10.0]
    rate = EventRate(lambda: now[0])
    assert rate() == 0
    rate.add(100, 0)
    now[0] = 12.0
    rate.add(200, 100)
    assert rate() == 100
    now[0] = 14.0
    assert rate() == 50
    now[0] = 18.0
    assert rate() == 0


@pytest.mark.parametrize("flags", [[], ["--available-now"]])
def test_a_run_that_is_refused_starts_no_spark(tmp_path: Path, flags: list[str]):
    """On a terminal too, the lines of a run follow the checks that need no Spark."""
    app = tmp_path / "app.py"
    app.write_text(
        "import millstream as ms\n\napp = ms.App('shop')\napp.source('in')\n\n"
        "@app.map('in')\ndef look(event):\n    pass\n"
    )
    store = tmp_path / "store"
    (tmp_path / "in").mkdir()
    source = f"in=json:{tmp_path / 'in'}"
    words = ["run", str(app), "--store", str(store), "--source", source, "--port", "0", *flags]
    ours, theirs = pty.openpty()
    with held(store):
        code = f"from millstream.cli.main import main; main({words!r})"
        done = subprocess.run(
            [sys.executable, "-c", code], stdout=theirs, stderr=theirs, timeout=60
        )
    said = os.read(ours, 1 << 16).decode()
    os.close(ours)
    os.close(theirs)
    assert done.returncode != 0
    assert "Spark" not in said
    assert "is running" not in said
    assert "another driver holds this store" in said
