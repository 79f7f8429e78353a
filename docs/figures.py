"""The figures in the pages, from what the benchmarks left in bench/results.

Between `<!-- figures:NAME -->` and `<!-- /figures:NAME -->` stands a table made from
bench/results/NAME.json, with the commit and the machine it was measured on; NAME.PART is a part of
what stands there. Nobody writes a figure by hand.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench import ctr_plot
from bench.agent_simulation import tables as agent_tables
from bench.feeds.page import PAGE as FEEDS
from bench.imr.page import PAGE as IMR
from bench.peers import tables as peers_tables
from bench.s4.page import PAGE as S4

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench" / "results"
_MARKED = re.compile(r"(<!-- figures:([\w.]+) -->\n).*?(<!-- /figures:\2 -->)", re.DOTALL)
_RATES = {"events_per_s": "events/s", "workers_mib": "workers' memory, MiB"}
_FAULTS = {
    "promise": "promise",
    "runs": "runs",
    "failed": "failed",
    "lost": "lost",
    "doubled": "doubled",
    "recovery_median_s": "recovery, s: median",
    "recovery_max_s": "max",
}
_COLUMNS: dict[str, dict[str, str]] = {
    "keyed_updates": {**_RATES, "driver_mib": "driver's memory, MiB"},
    "zipf": {**_RATES, "driver_mib": "driver's memory, MiB"},
    "hot_topics": {**_RATES, "driver_mib": "driver's memory, MiB"},
    "latency": {
        "p50_s": "p50, s",
        "p99_s": "p99, s",
        "max_s": "max, s",
        "batch_p50_s": "a batch, p50, s",
    },
    "in_turn": {"before": "before, events/s", "now": "now, events/s", "ratio": "ratio"},
    "startup": {"median_s": "median, s", "least_s": "least, s", "most_s": "most, s"},
    "growth": {
        **_RATES,
        "disk_before_mib": "disk before, MiB",
        "disk_after_mib": "disk after, MiB",
    },
    "shared": {
        "events_per_s": "events/s",
        "cpu_us": "processor time of an event, µs",
        "warm_cpu_us": "after the first batch, µs",
        "batch_s": "a batch, s",
        "requests": "requests to S3 a batch",
        "s3_cpu_us": "of S3 and its proxy, µs",
    },
    "readers": {
        "seconds": "seconds",
        "slates_per_s": "slates a second",
        "p50_s": "lag, p50, s",
        "p99_s": "p99, s",
        "max_s": "max, s",
    },
    "kafka": {"events_per_s": "records/s", "p50_s": "p50, s", "p99_s": "p99, s"},
    "tables": {"slates_per_s": "changed slates/s", "whole_s": "whole, s"},
    "live": {
        "per_s": "a second",
        "p50_ms": "p50, ms",
        "p99_ms": "p99, ms",
        "max_ms": "max, ms",
        "cores_server": "server's cores",
        "per_core": "a second, by one core alone",
    },
    "aggregates": _RATES,
    "batch_updates": _RATES,
    "flush": {**_RATES, "batch_p50_s": "a batch, p50, s"},
    "hot_key": {"p50_s": "p50, s", "p99_s": "p99, s", "batch_p50_s": "a batch, p50, s"},
    "overload": {
        "events": "events",
        "batches": "batches",
        "batch_p50_s": "a batch, p50, s",
        "batch_p95_s": "p95, s",
        "batch_max_s": "max, s",
    },
    "poison": {**_RATES, "dead_letters": "dead letters"},
    "recovery": {"seconds": "seconds"},
    "executor_lost": {"seconds": "seconds"},
    "soak": {
        "jvm_mib": "JVM, MiB",
        "python_mib": "Python processes, MiB",
        "disk_mib": "disk, MiB",
    },
    "faults": _FAULTS,
    "cluster_faults": _FAULTS,
    "service_faults": _FAULTS,
    "ctr": {
        "sent": "events",
        "lost": "lost",
        "error_percent": "relative error, %",
        "paper_percent": "the paper's, %",
        "mbps": "Mbps",
        "paper_mbps": "the paper's Mbps",
        "processed_per_s": "processed a second",
        "lag_events": "not yet taken in at the end",
        "lag_middle": "events that wait, middle third",
        "lag_last": "last third",
        "behind_s": "behind at the end, s",
    },
    "agents": {
        "count": "of them",
        "made": "requests made",
        "got": "requests got",
        "both_p99": "both, p99",
        "both_max": "both, max",
        "hello": "hellos",
        "news": "questions for news",
        "panes": "posts of panes",
        "kib": "KiB",
    },
    "dump": {
        "slates_per_s": "slates/s",
        "seconds": "whole, s",
        "first_ms": "first piece, ms",
        "anon_before_mib": "server's memory before, MiB",
        "anon_max_mib": "at most, MiB",
    },
}
_TEXTS = {"promise"}
"""Columns of words."""
_SAYS = {
    "in_turn": "Before events were columns (commit 58cb407) and since, measured in turn, five "
    "rounds, medians (`python -m bench.in_turn COMMIT`); 4,000,000 events in five batches, "
    "300,000 tweets for hot topics",
    "keyed_updates": "A count in a dict slate, 1,000,000 events over 100,000 uniform keys, durable "
    "every batch",
    "zipf": "The same over 1,000 skewed keys",
    "hot_topics": "A map, two updates and timers (`examples/hot_topics.py`), beside the single "
    "update",
    "latency": "Two updates in a chain, 4,000 events/s for 60 s from another process: from a "
    "file's arrival to its slate being readable",
    "startup": "A `millstream run` over 100 events, from the start of its process to its end, "
    "beside a program that opens a SparkContext and runs one RDD job: with Spark's defaults, and "
    "with Millstream's settings of the JVM. Seven of each, in turn; Millstream's JVM uses its "
    "class archive, the others have none",
    "growth": "The same load, 100,000 active keys, over a store that holds so many slates already",
    "shared": "A count over 100,000 uniform keys on `local[2]`, all that is durable in a folder or "
    "in S3; in ten batches, in batches of 500 events, and with 50 ms put into every request; and "
    "on a standalone cluster of two hosts of one core each, on the same machine. The processor "
    "time of an event is that of all processes in the whole run, with the start of Spark, divided "
    "by the events. A cluster starts more JVMs and Python workers, which has nothing to do with "
    "the number of events; so `cluster_cpu_ratio` compares the times after the first batch, and "
    "`cpu_ratio` those of whole runs",
    "readers": "A reader of a store of 1,000,000 slates in S3, until its first answer: on an "
    "empty host, and on one with a mirror left by an earlier process; *lag* is the time from a "
    "commit until the reader shows it, behind commits without Spark, and behind a run at a steady "
    "rate",
    "kafka": "A count of each of 100,000 keys, from files and from a topic of six partitions with "
    "the same records, the broker on the same two cores; peers count the same topic in two "
    "processes each, with state on disk. Then two updates in a chain at 4,000 records/s: from a "
    "record's acknowledgement to its slate being readable",
    "tables": "Changes of slates, 50,000 in a batch, from files through Spark into a table of a "
    "server on the same two cores; a batch is only committed once the one before it is in the "
    "table",
    "live": "Over HTTP, while 4,000 events/s come in and are counted over 10,000 keys: reads of "
    "one slate, as fast as they are answered (closed) and at 4,000/s whatever is answered (open); "
    "from the acknowledgement of an event to its slate being read (end to end); then, without the "
    "feed, events sent in bodies of 500 (posts). Medians of three rounds, the load on the same "
    "cores",
    "aggregates": "Counts and sums that declare their algebra, beside an update that is called for "
    "each event: 8,000,000 events over 100,000 uniform keys, or 90% of them of one key, in batches "
    "of 2,000,000",
    "batch_updates": "A sum and a mean of each of 100,000 keys, by an update that is called for "
    "each event, with all events of a key, or with those of many keys as a table: 8,000,000 events "
    "in batches of 2,000,000",
    "flush": "Flushed to disk at every batch, and every ten seconds",
    "hot_key": "An update of 250 µs an event without an algebra, 3,800 events/s, uniform or 90% of "
    "them of one key: from a file's arrival to the slate of one of the *other* keys being readable",
    "overload": "The same update at 1,000 events/s, then ten times as many, which is more than it "
    "can bear, then 1,000 again; `batch_seconds` is 2",
    "poison": "A count over 100,000 uniform keys, without and with one event in a hundred that "
    "raises, in turn",
    "recovery": "From SIGKILL of the driver, its JVM and its workers to the first commit of the "
    "next driver, with 1,000,000 slates, Spark's start included",
    "executor_lost": "A standalone cluster of two hosts with one executor each, 1,000,000 slates "
    "in S3, 4,000 events/s over all of them: from SIGKILL of an executor, whose host keeps its "
    "copies, or the loss of a host with its disk, to the commit of events that came after it; all "
    "on one machine of two cores",
    "soak": "Twenty minutes at half of the top rate, over HTTP: memory that the processes have for "
    "themselves, and the store's files; medians of each fifth of the time",
    "faults": "Each run is one strike of the fault, compared with the reference: slates, output "
    "rows and dead letters",
    "cluster_faults": "The same on three worker hosts with disks of their own, their store in S3",
    "service_faults": "The same beside real servers, which are killed too; each run is one kill",
    "ctr": "Click-through rates (`examples/ctr.py`) against their truth, by the rate at which "
    "serves and clicks are sent over HTTP: 15 s of each rate below 20,000/s, else 3,000,000 "
    "events; last, the same from standard elements (`examples/ctr.toml`)",
    "agents": "A second, by the kind of node: what it makes and gets, means over all of that kind "
    "unless it says otherwise; the last four of both directions",
    "dump": "All slates of an update over HTTP (`GET /slates/{update}/dump`)",
}

EVALUATIONS = (S4, IMR, FEEDS)
"""The pages of the evaluations."""
_PARTS: dict[str, Callable[[dict[str, Any], str], str]] = {
    **{page.case: page.part for page in EVALUATIONS},
    "ctr": ctr_plot.part,
    "agents": agent_tables.part,
    "peers": peers_tables.part,
}
"""The cases that fill a page in parts, and what makes one."""


def filled(page: str, results: Path = RESULTS) -> str:
    """The page with every marked place filled from its results; left alone where there are none."""

    def fill(marked: re.Match[str]) -> str:
        case, _, part = marked[2].partition(".")
        path = results / f"{case}.json"
        if not path.exists():
            return marked[0]
        found = json.loads(path.read_text())
        text = _PARTS[case](found, part) if part else table(found)
        return f"{marked[1]}{text}{marked[3]}"

    return _MARKED.sub(fill, page)


def table(found: dict[str, Any]) -> str:
    """The rows of a case as a Markdown table, its ratios and bars, and where it was measured."""
    columns = _COLUMNS[found["case"]]
    lines = [
        f"{_SAYS[found['case']]}:",
        "",
        f"| | {' | '.join(columns.values())} |",
        f"|---|{''.join('---|' if name in _TEXTS else '---:|' for name in columns)}",
    ]
    for row in found["rows"]:
        cells = [_shown(row.get(name)) for name in columns]
        lines.append(f"| {row['what']} | {' | '.join(cells)} |")
    if columns is _FAULTS and found["notes"]:
        failures = "; ".join(f"`{note.strip()}`" for note in found["notes"])
        lines += ["", f"Failed, and not in the other columns: {failures}."]
    machine = found["machine"]
    bars = "; ".join(
        f"{bar['figure']} {_shown(bar['value'])} (bar {_shown(bar['limit'])}"
        f"{', held' if bar['held'] else ', missed'})"
        for bar in found["bars"]
    )
    lines += [
        "",
        f"{bars}. Commit {found['commit'][:10]}, {machine['cores']} cores ({machine['cpu']}), "
        f"Python {machine['python']}, Java {machine['java']}, Spark {machine['spark']}.",
        "",
    ]
    return "\n".join(lines)


def _shown(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    return f"{value:,.0f}" if value >= 1_000 else f"{value:.3g}"
