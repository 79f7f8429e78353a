"""Compares answers over the logs of Loghub with a plain count of the same lines.

    scripts/loghub FOLDER
    python -m bench.loghub FOLDER [--only NAME ...] [--range 1m]

You can put your own logs into the folder too, as NAME.log. For each log a root is started
(`millstream dev`) and an agent that reads it to its end, both as processes: once with corrections
of all windows, and once with none, the default. With corrections the truth must lie within the
bounds of every window's last answer. An earlier answer, or one that is not corrected, may be broken
by late lines (`broken`, and `broken, uncorrected`), unless it claims a confidence (`overclaimed`).
A last answer that was corrected must not be called complete, nor have an area of 1, if it lacks
lines (`called complete`).
The Apache log is read once more with a latency: no line may be lost to it, within 20 seconds. Exits
with 1 if any of this does not hold, if a window with lines has no answer, or if a process failed. A
run over all logs writes `bench/results/loghub.json`.
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
from dataclasses import dataclass
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
    ms.windows.Job(map=lines, combine=ms.algebra.count(), range={range!r}, **{job!r}),
    name="lines",
    nodes=["here"],
    logs=ms.windows.Logs(**{logs!r}),
)
"""
CORRECTED = {"corrections": 2_000_000}
LATENCY_LOG, LATENCY, LATENCY_SECONDS = "Apache", "10s", 20.0
"""The log that is read with a latency too, the latency, and the most seconds that this may take."""
BAD = ("unanswered", "wrong", "overclaimed", "called complete", "lost", "failed")
"""The columns that must be 0."""
Answer = dict[str, Any]
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


@dataclass(frozen=True)
class Reading:
    """What a root has answered over one log, and what it took."""

    answers: dict[int, list[Answer]]
    """The answers of each window with lines, or of its own, in order."""
    late: int
    dead: int
    failed: bool
    seconds: float


def reading_of(
    log: Path, form: Form, length: str, truth: Counter[int], lines: int, job: dict[str, Any]
) -> Reading:
    """Runs a root and an agent over one log. `job` has further options of the job."""
    with tempfile.TemporaryDirectory(prefix="loghub-") as made:
        folder = Path(made)
        (folder / "app.py").write_text(APP.format(range=length, logs=form.logs, job=job))
        began = time.monotonic()
        with root_of(folder) as client:
            agent = [sys.executable, "-m", "millstream.cli.main", "agent", "app.py", "--once"]
            agent += ["--node", "here", "--log", str(log)]
            agent += ["--root", str(client.base_url).rstrip("/")]
            done = subprocess.run(
                agent, cwd=folder, capture_output=True, text=True, timeout=PATIENCE, check=False
            )
            answers, seconds = answered(client, truth, lines, began)
            counts = client.get("/jobs/lines").json()["totals"]
    failed = done.returncode != 0 or "Traceback" in done.stderr
    return Reading(answers, counts["late"], counts["dead"], failed, seconds)


def judged(log: Path, form: Form, length: str) -> dict[str, Any]:
    """Reads one log, with corrections and without; returns what was read and answered, and what is
    wrong."""
    truth, without = truth_of(log, form, microseconds(length, "--range"))
    every = sum(truth.values()) + without
    reading = reading_of(log, form, length, truth, every, CORRECTED)
    once = reading_of(log, form, length, truth, every, {})
    row = row_of(log.stem.removesuffix("_2k"), truth, every, reading, corrected=True)
    broken = [at for at, said in once.answers.items() if not within(said[-1], truth[at])]
    overclaimed = sum(claims(once.answers[at][-1]) for at in broken)
    row["overclaimed"] += overclaimed
    row["failed"] += once.failed
    return {**row, "broken, uncorrected": len(broken)}


def row_of(
    what: str, truth: Counter[int], every: int, reading: Reading, *, corrected: bool
) -> dict[str, Any]:
    """Compares the answers over a log with the truth. Only a window's last answer must hold it.
    `corrected`: all windows are corrected."""
    answers = reading.answers
    # Lines with implausible times may be alone in their windows; they are counted as dead.
    unanswered = sum(count for at, count in truth.items() if at not in answers)
    last = {at: said[-1] for at, said in answers.items()}
    broken = [
        answer
        for at, said in answers.items()
        for answer in said[:-1]
        if not within(answer, truth[at])
    ]
    return {
        "what": what,
        "lines": every,
        "windows": len(truth),
        "late": reading.late,
        "dead": reading.dead,
        "corrected": sum(answer.get("correction", 0) > 0 for answer in last.values()),
        "unanswered": unanswered if unanswered > reading.dead else 0,
        "unbounded": sum(last[at]["total"]["high"] is None for at in truth if at in last),
        "wrong": sum(not within(answer, truth[at]) for at, answer in last.items()),
        "broken": len(broken),
        "overclaimed": sum(map(claims, broken)),
        "called complete": sum(
            answer["records"] < truth[at] and calls_complete(answer) for at, answer in last.items()
        )
        if corrected
        else 0,
        "lost": 0,
        "failed": int(reading.failed),
        "seconds": round(reading.seconds, 1),
    }


def latency_row(log: Path, form: Form, length: str) -> dict[str, Any]:
    """Reads a log with a latency and without corrections: `lost` counts the lines of windows that
    were closed by the latency without them."""
    truth, without = truth_of(log, form, microseconds(length, "--range"))
    every = sum(truth.values()) + without
    reading = reading_of(log, form, length, truth, every, {"latency": LATENCY})
    row = row_of(
        f"{log.stem.removesuffix('_2k')}, latency {LATENCY}", truth, every, reading, corrected=False
    )
    row["lost"] = sum(
        truth[at] - said[-1]["records"]
        for at, said in reading.answers.items()
        if said[-1]["why"] == "latency"
    )
    return {**row, "broken, uncorrected": row["wrong"]}


def answered(
    client: httpx.Client, truth: Counter[int], lines: int, began: float
) -> tuple[dict[int, list[Answer]], float]:
    """Returns the answers of each window, and the seconds until the last of them.

    Many windows without lines share one answer: it is the first of those in `truth`, whose lines
    came late. Returns once the root has counted `lines` lines and no more answers come.
    """
    answers: dict[int, list[Answer]] = {}
    shared: list[Answer] = []
    start: int | str = "start"
    last = time.monotonic()
    while time.monotonic() < began + PATIENCE:
        asked = {"from": start, "limit": 1_000}
        page = client.get("/streams/lines.windows/records", params=asked).json()
        start = page["next"]
        for answer in (row["value"]["value"] for row in page["records"]):
            if "windows" in answer:
                shared.append(answer)
            else:
                answers.setdefault(answer["from"], []).append(answer)
        now = time.monotonic()
        if page["records"]:
            last = now
        elif client.get("/jobs/lines").json()["totals"]["read"] < lines:
            last = now
            time.sleep(0.5)
        elif now - last > QUIET:
            break
        else:
            time.sleep(0.2)
    for answer in shared:
        for at in truth:
            if answer["from"] <= at < answer["to"]:
                answers.setdefault(at, []).insert(0, answer)
    return answers, last - began


def within(answer: Answer, truth: int) -> bool:
    low, high = answer["total"]["low"], answer["total"]["high"]
    return (low is None or low <= truth) and (high is None or truth <= high)


def claims(answer: Answer) -> bool:
    """True if an answer's bounds claim to hold whatever comes late."""
    return answer["total"]["final"] or answer["total"]["confidence"] is not None


def calls_complete(answer: Answer) -> bool:
    """True if an answer says that it lacks nothing."""
    return bool(answer["why"] == "complete" or answer["coverage"]["area"] == 1.0)


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
        if name == LATENCY_LOG:
            rows.append(latency_row(log, FORMS[name], given.range))
            print(rows[-1], file=sys.stderr, flush=True)
    print(table(rows))
    bad = sum(row[column] for row in rows for column in BAD)
    slow = max((row["seconds"] for row in rows if "latency" in row["what"]), default=0.0)
    if given.only == [*FORMS] and len(rows) == len(FORMS) + 1:
        figures = {"lines": sum(row["lines"] for row in rows), "bad": bad, "latency_seconds": slow}
        bars = [
            Bar("bad", bad, 0, at_least=False),
            Bar("latency_seconds", slow, LATENCY_SECONDS, at_least=False),
        ]
        outcome = Outcome("loghub", rows, figures, bars, {"range": given.range})
        when = datetime.now(UTC).isoformat()
        print(write(RESULTS, record(outcome, machine(), commit(), when, quick=False)))
    return int(bad > 0 or slow > LATENCY_SECONDS)


if __name__ == "__main__":
    sys.exit(main())
