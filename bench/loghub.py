"""Compares answers over the logs of Loghub with a plain count of the same lines.

    scripts/loghub FOLDER
    python -m bench.loghub FOLDER [--only NAME ...] [--range 1m]

You can put your own logs into the folder too, as NAME.log. For each log a root is started
(`millstream dev`) and an agent that reads it to its end, both as processes. The truth must lie
within the bounds of every window's last answer. Exits with 1 if it does not, if a window with lines
has no answer, or if a process failed. A run over all logs writes `bench/results/loghub.json`.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx

from bench.figures import Bar, Outcome
from bench.log_shapes import FORMS, Form
from bench.machine import commit, machine
from bench.results import RESULTS, record, write
from bench.table import table
from millstream.model.duration import microseconds

APP = """
import millstream as ms

def lines(record):
    yield "lines", 1

app = ms.App("loghub")
app.add(
    ms.windows.Job(map=lines, combine=ms.algebra.count(), range={range!r}, corrections=2_000_000),
    name="lines",
    nodes=["here"],
    logs=ms.windows.Logs(**{logs!r}),
)
"""
PATIENCE = 1_800.0
QUIET = 5.0
"""Once every line is counted, no more answers are expected after these seconds without one."""


def truth_of(log: Path, form: Form, length: int) -> tuple[Counter[int], int]:
    """Counts the lines by the start of their window, in microseconds, and those without a time."""
    found: Counter[int] = Counter()
    without = 0
    for line in log.read_bytes().split(b"\n"):
        if not line:
            continue
        at = form.time_of(line)
        if at is None:
            without += 1
        else:
            found[at // length * length] += 1
    return found, without


@contextmanager
def root_of(folder: Path) -> Iterator[httpx.Client]:
    """Runs a root of the application in a folder; yields a client of its server."""
    command = [sys.executable, "-m", "millstream.cli.main", "dev", "app.py", "--port", "0"]
    with (folder / "root.txt").open("w") as said:
        process = subprocess.Popen(command, cwd=folder, stdout=said, stderr=subprocess.STDOUT)
        try:
            until = time.monotonic() + 60
            while not (url := re.search(r"http://\S+", (folder / "root.txt").read_text())):
                if process.poll() is not None or time.monotonic() > until:
                    raise RuntimeError((folder / "root.txt").read_text())
                time.sleep(0.05)
            with httpx.Client(base_url=url[0], timeout=300) as client:
                yield client
        finally:
            process.terminate()
            process.wait(30)


def judged(log: Path, form: Form, length: str) -> dict[str, Any]:
    """Runs over one log; returns what was read and answered, and what is wrong."""
    size = microseconds(length, "--range")
    truth, without = truth_of(log, form, size)
    with tempfile.TemporaryDirectory(prefix="loghub-") as made:
        folder = Path(made)
        (folder / "app.py").write_text(APP.format(range=length, logs=form.logs))
        began = time.monotonic()
        with root_of(folder) as client:
            agent = [sys.executable, "-m", "millstream.cli.main", "agent", "app.py", "--once"]
            agent += [
                "--node",
                "here",
                "--log",
                str(log),
                "--root",
                str(client.base_url).rstrip("/"),
            ]
            done = subprocess.run(
                agent, cwd=folder, capture_output=True, text=True, timeout=PATIENCE, check=False
            )
            every = sum(truth.values()) + without
            answers, quiet = answered(client, every, began + PATIENCE)
            seconds = time.monotonic() - began
            counts = client.get("/jobs/lines").json()["totals"]
    for first, end, answer in quiet:  # for many windows; some have got an answer of their own since
        for at in truth:
            if first <= at < end:
                answers.setdefault(at, answer)
    # Lines with implausible times may be alone in their windows; they are counted as dead.
    unanswered = sum(count for at, count in truth.items() if at not in answers)
    wrong = [at for at, answer in answers.items() if not within(answer, truth[at])]
    return {
        "what": log.stem.removesuffix("_2k"),
        "lines": every,
        "windows": len(truth),
        "late": counts["late"],
        "dead": counts["dead"],
        "corrected": sum(one.get("correction", 0) > 0 for one in answers.values()),
        "unanswered": unanswered if unanswered > counts["dead"] else 0,
        "unbounded": sum(answers[at]["total"]["high"] is None for at in truth if at in answers),
        "wrong": len(wrong),
        "failed": int(done.returncode != 0 or "Traceback" in done.stderr),
        "seconds": round(seconds, 1),
    }


Answer = dict[str, Any]


def answered(
    client: httpx.Client, lines: int, until: float
) -> tuple[dict[int, Answer], list[tuple[int, int, Answer]]]:
    """The last answer of each window, and those for ranges of quiet windows.

    Returns once the root has counted `lines` lines and no more answers come, or at `until`.
    """
    found: dict[int, Answer] = {}
    quiet: list[tuple[int, int, Answer]] = []
    start: int | str = "start"
    last = time.monotonic()
    while True:
        asked = {"from": start, "limit": 1_000}
        page = client.get("/streams/lines.windows/records", params=asked).json()
        start = page["next"]
        for answer in (one["value"]["value"] for one in page["records"]):
            if "windows" in answer:
                quiet.append((answer["from"], answer["to"], answer))
            else:
                found[answer["from"]] = answer
        now = time.monotonic()
        if page["records"]:
            last = now
        elif now > until:
            return found, quiet
        elif client.get("/jobs/lines").json()["totals"]["read"] < lines:
            last = now
            time.sleep(0.5)
        elif now - last > QUIET:
            return found, quiet
        else:
            time.sleep(0.2)


def within(answer: dict[str, Any], truth: int) -> bool:
    low, high = answer["total"]["low"], answer["total"]["high"]
    return (low is None or low <= truth) and (high is None or truth <= high)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.loghub", description=__doc__)
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("--only", nargs="+", choices=[*FORMS], default=[*FORMS], metavar="NAME")
    parser.add_argument("--range", default="1m", metavar="TIME")
    given = parser.parse_args()
    rows = []
    for name in given.only:
        log = given.folder / name / f"{name}_2k.log"
        log = log if log.exists() else given.folder / f"{name}.log"
        if not log.exists():
            print(f"{name}: {log} is not there, and left out", file=sys.stderr)
            continue
        rows.append(judged(log, FORMS[name], given.range))
        print(rows[-1], file=sys.stderr, flush=True)
    print(table(rows))
    if given.only == [*FORMS] and len(rows) == len(FORMS):
        bad = sum(row[what] for row in rows for what in ("unanswered", "wrong", "failed"))
        outcome = Outcome(
            "loghub",
            rows,
            {"lines": sum(row["lines"] for row in rows), "bad": bad},
            [Bar("bad", bad, 0, at_least=False)],
            {"range": given.range},
        )
        when = datetime.now(UTC).isoformat()
        print(write(RESULTS, record(outcome, machine(), commit(), when, quick=False)))
    return int(any(row[bad] for row in rows for bad in ("unanswered", "wrong", "failed")))


if __name__ == "__main__":
    sys.exit(main())
