"""The stress test of S4's click-through rates (S4, section IV, Figure 6): the error of the result
at rising rates.

The application is examples/ctr.py, started with `millstream run` as users do. Its traffic is 3
million serves and clicks whose true rates are known. They are sent over HTTP, and acknowledged when
they are on disk. At the end every published window is compared with the truth. The paper's rates
come first, for fifteen seconds each; then, with all 3 million events, 20,000 a second, all events
at once, and the highest rate that holds; finally three rates with longer batches. A rate holds if
the application does not fall further and further behind: in the last third of the time at most a
quarter more events wait than in the middle third, or less than two seconds of events; and at the
end it is at most ten seconds behind.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from bench import ctr_data, ctr_sending
from bench.apart import Apart, RunFailedError, begun
from bench.bench import Bench
from bench.calibration import calibrate
from bench.data import size_of
from bench.figures import Bar, Outcome
from bench.lean import get_json, now
from bench.machine import ROOT
from bench.served import Served, served
from bench.spent import shares, spent
from examples.ctr_truth import relative_error

Row = dict[str, Any]
PAPER = {
    2_000: (0.0, 2.6),
    3_644: (0.0, 4.9),
    7_268: (0.2, 9.7),
    10_480: (0.4, 14.0),
    12_432: (0.7, 16.6),
    14_900: (1.5, 19.9),
    16_000: (1.7, 21.4),
    20_000: (4.2, 26.7),
}
"""Figure 6: events a second, the relative error of the click-through rates in percent, and Mbps."""
LATENESS = 10_000_000
BEHIND_S = 10.0
"""Seconds that an application that keeps up may be behind at the end."""
STEADY, SPARE_S = 1.25, 2.0
"""The factor by which waiting events may grow from the middle to the last third, and the waiting
events that are always allowed, in seconds of events."""
PATIENCE = 900.0
WARM_UP = 2_000
"""Events that are sent and processed first: they wait for Spark's start."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The size of the test; times in seconds."""

    events: int = 3_000_000
    seconds: float = 15.0
    """Seconds for which the paper's rates below 20,000 are sent."""
    rates: tuple[int, ...] = tuple(PAPER)
    all_from: int = 20_000
    """From this rate on, all events are sent."""
    up: float = 1.1
    down: float = 0.93
    """The factors by which the tried rate rises while rates hold, and falls until one does."""
    tries: int = 2
    long_batch: str = "4s"
    """The target for a batch's time in the runs that trade latency for throughput."""
    long_rates: tuple[int, ...] = (20_000, 22_000, 24_000)
    standard: int = 1_000_000
    """Events for the application of standard elements, examples/ctr.toml."""

    def events_at(self, rate: int) -> int:
        return (
            self.events if rate >= self.all_from else min(self.events, round(rate * self.seconds))
        )


QUICK = Plan(
    events=20_000, seconds=3.0, rates=(2_000, 20_000), tries=1, standard=5_000, long_rates=()
)


def run(bench: Bench) -> Outcome:
    return run_plan(bench, QUICK if bench.quick else Plan())


def run_plan(bench: Bench, plan: Plan) -> Outcome:
    speeds = [calibrate()]
    rows = [_run(bench, f"{rate:,}/s", rate, plan.events_at(rate)) for rate in plan.rates]
    for row, rate in zip(rows, plan.rates, strict=True):
        row["paper_percent"], row["paper_mbps"] = PAPER[rate]
    speeds.append(calibrate())
    at_once = _run(bench, "all at once", None, plan.events)
    rows += [at_once, *_highest(bench, plan, at_once["processed_per_s"])]
    for rate in plan.long_rates:
        what = f"{rate:,}/s, batches of {plan.long_batch}"
        long = ("ctr.py", "--batch-seconds", plan.long_batch)
        rows.append(_run(bench, what, rate, plan.events_at(rate), *long))
    speeds.append(calibrate())
    rows.append(_run(bench, "ctr.toml, all at once", None, plan.standard, "ctr.toml"))
    figures = {**figures_of(rows), "calibration": median(speeds)}
    settings = {**asdict(plan), "warm_up": WARM_UP, "behind_s": BEHIND_S, "shards": 16}
    return Outcome("ctr", rows, figures, bars_of(figures), settings, NOTES)


def figures_of(rows: list[Row]) -> dict[str, float]:
    """The figures that matter."""
    *_, at_once = (row for row in rows[:-1] if row["rate"] is None)
    return {
        "lost": sum(row["lost"] for row in rows),
        "error_percent": max(row["error_percent"] for row in rows),
        "wrong_windows": sum(row["wrong"] for row in rows),
        "highest_per_s": max((row["rate"] for row in rows if row["holds"]), default=0),
        "at_once_per_s": at_once["processed_per_s"],
        "standard_per_s": rows[-1]["processed_per_s"],
    }


def bars_of(figures: dict[str, float]) -> list[Bar]:
    return [
        Bar("lost", figures["lost"], 0, at_least=False),
        Bar("error_percent", figures["error_percent"], 0, at_least=False),
        Bar("wrong_windows", figures["wrong_windows"], 0, at_least=False),
        Bar("highest_per_s", figures["highest_per_s"], 20_000),
    ]


NOTES = [
    "error_percent: the mean over all queries and ads of |rate - true rate| / true rate, of the "
    "last window that was put out; wrong: windows of any hour that are not exactly as they must be",
    "lost: events sent that were not accepted, not processed, late or dead letters, and deliveries "
    "between the elements that are not accounted for",
    "lag_events: accepted and not yet taken in when the last had been sent; behind_s: from then "
    "until all was processed and the last windows were due; a rate holds if that is at most "
    f"{BEHIND_S:g} s, and what waits does not grow (lag_middle, lag_last: medians of the middle "
    "and the last third of the time)",
    "each run has 26 hours of traffic; where it has fewer events it has fewer queries and users",
]


def _highest(bench: Bench, plan: Plan, at_once: float) -> list[Row]:
    """Tries rates around that of all events at once: rising while they hold, else falling until one
    does."""
    rows: list[Row] = []
    rate, step = at_once, 0.0
    for _ in range(plan.tries):
        rounded = max(500, int(rate // 500) * 500)
        rows.append(_run(bench, f"{rounded:,}/s", rounded, plan.events))
        holds = rows[-1]["holds"]
        if step and holds != (step > 1):
            break  # the direction has changed
        step = plan.up if holds else plan.down
        rate *= step
    return rows


def _run(
    bench: Bench,
    what: str,
    rate: int | None,
    events: int,
    example: str = "ctr.py",
    *options: str,
) -> Row:
    """Send events at a rate to a new application; returns the row of the table.

    `options` are more arguments for `millstream run`.
    """
    bench.say(f"  {what}: {events:,} events ...")
    folder = ctr_data.made(bench.data, events)
    store, out = bench.fresh("ctr/store"), bench.fresh("ctr/out")
    app, log = str(ROOT / "examples" / example), bench.work / "ctr" / "log"
    given = {"folder": str(folder)}
    with served("run", app, "--sink", f"ctr=json:{out}", *options, store=store, log=log) as running:
        with begun(ctr_sending.send, url=running.url, rate=None, stop=WARM_UP, **given) as warming:
            warming.wait()
        _until(running, lambda status: status["events"] >= WARM_UP)
        before = spent(running.parts)
        with begun(ctr_sending.send, url=running.url, rate=rate, start=WARM_UP, **given) as sending:
            lags = _watched(running, sending)
            sent = sending.wait()
        ended = now()
        lag = events - get_json(running.url, "/status")["events"]
        over = _last_serve(folder) * 1_000 - LATENESS
        status = _until(
            running,
            lambda one: one["events"] >= events and (one["horizon"] or 0) >= over,
        )
        behind = now() - ended
        cores = shares(before, spent(running.parts))
    sender = sent["cpu_s"] / (sent["seconds"] + behind)
    others = max(0.0, cores["others"] - sender) / (os.cpu_count() or 1)
    row = {
        "what": what,
        "rate": rate,
        "sent": sent["sent"] + WARM_UP,
        "lost": _lost(sent["sent"], sent["accepted"], status),
        **_compared(folder, out),
        "lag_events": lag,
        "behind_s": behind,
        "sent_per_s": sent["sent"] / sent["seconds"],
        "processed_per_s": sent["sent"] / (sent["seconds"] + behind),
        "mbps": sent["bytes"] * 8 / sent["seconds"] / 1e6,
        "sender_behind_s": sent["behind_s"],
        "store_mib": size_of(store) / 2**20,
        "lag_middle": _median(lags, 1),
        "lag_last": _median(lags, 2),
        "holds": rate is not None
        and max(behind, sent["behind_s"]) <= BEHIND_S
        and _median(lags, 2) <= max(STEADY * _median(lags, 1), SPARE_S * rate),
        **{f"cores_{part}": cores[part] for part in ("server", "driver", "jvm", "workers")},
        "cores_sender": round(sender, 3),
        "cpu_others": round(others, 3),
    }
    told = ", ".join(f"{name} {row[name]:,.6g}" for name in SHOWN)
    bench.say(f"  {what}: {told}")
    return row


SHOWN = (
    *("lost", "error_percent", "wrong", "lag_middle", "lag_last", "lag_events", "behind_s"),
    *("processed_per_s", "mbps"),
)


def _watched(running: Served, sending: Apart) -> list[int]:
    """The number of waiting events, second by second, while events were sent."""
    lags: list[int] = []
    while sending.running():
        time.sleep(1)
        sources = get_json(running.url, "/status")["sources"]
        lags.append(sum(source["lag_events"] or 0 for source in sources))
    return lags


def _median(lags: list[int], third: int) -> float:
    """The median of waiting events in a third of the time."""
    size = max(1, len(lags) // 3)
    return float(median(lags[third * size : (third + 1) * size] or [0]))


def _lost(sent: int, accepted: int, status: Row) -> int:
    """The number of events that did not get through, of those in the warm-up and after it."""
    owed = status["deliveries"]
    unaccounted = abs(owed["residual"]) + owed["dropped"] + owed["diverted"]
    missing = sent + WARM_UP - status["events"]
    refused = status["late"] + status["dead_letters"]
    return int((sent - accepted) + missing + refused + unaccounted)


def _compared(folder: Path, out: Path) -> Row:
    truth, found = ctr_data.truth_of(folder), ctr_data.published(out)
    wrong = sum(found.get(one) != truth.get(one) for one in truth.keys() | found.keys())
    last = ctr_data.at_the_end(truth)
    error = relative_error(ctr_data.at_the_end(found), last)
    return {"error_percent": 100 * error, "wrong": wrong, "windows": len(truth), "pairs": len(last)}


def _until(running: Served, met: Any) -> Row:
    """Waits until the status meets a condition; returns it."""
    deadline = now() + PATIENCE
    while now() < deadline:
        status: Row = get_json(running.url, "/status")
        if met(status):
            return status
        time.sleep(0.05)
    raise RunFailedError(f"the application is behind even after {PATIENCE:.0f} seconds")


def _last_serve(folder: Path) -> int:
    with open(folder / "serves", "rb") as file:
        file.seek(-1_000, 2)
        last = json.loads(file.read().splitlines()[-1])
    return int(last["time"])
