r"""Slow data nodes of an HDFS cluster, by how long they take to write blocks (iMR, section 5.5).

A data node logs when it begins to receive a block and when it has received it. The job keeps these
lines of each block and pairs them when a window of 48 hours is over (`writes`); then there is a
histogram of the times for each HDFS node, and it is compared with those of the others by the
Kolmogorov-Smirnov test (`nodes`). A node that differs from more than half of them is suspect
(`suspects`).

The *service time* of a write is what lies between the two lines, in whole seconds, as the log has
them. The second line does not name the node that wrote it: the two are paired by the block and by
the address that it came from, in the order of time. If one address has sent a block to two nodes,
and their logs are read as one, their times may be exchanged.

Make logs, or spread the lines of a real one with `--log HDFS.log`, and read them on Spark:

    python -m examples.imr.hdfs_traffic --out /tmp/hdfs
    millstream run examples/hdfs_writes.py:files --final \
        --source dn1=json:/tmp/hdfs/dn1 --source dn2=json:/tmp/hdfs/dn2 \
        --source dn3=json:/tmp/hdfs/dn3 --source dn4=json:/tmp/hdfs/dn4 \
        --source dn5=json:/tmp/hdfs/dn5 --source dn6=json:/tmp/hdfs/dn6 \
        --sink nodes=json:/tmp/hdfs-nodes --sink suspects=json:/tmp/hdfs-suspects

Or leave them where they are, with an agent beside each (`--once`: a log that grows no more):

    millstream run examples/hdfs_writes.py:app
    millstream agent examples/hdfs_writes.py:app --job writes --node dn1 \
        --log '/tmp/hdfs/dn1.log' --root http://127.0.0.1:8470 --once   # and so on for each
"""

import re
import sys
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

# A folder of scripts: beside `millstream run` its modules are found from the checkout.
sys.path.append(str(Path(__file__).resolve().parent.parent))

import millstream as ms
from examples.imr.by_window import bounds, by_window, is_over
from examples.imr.kolmogorov_smirnov import compared

NODES = ("dn1", "dn2", "dn3", "dn4", "dn5", "dn6")
EDGES = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 60, 90, 120, 300, 600)
"""Seconds up to which each bucket goes; the last bucket has what is over."""
LEVEL = 0.01
BEGIN = datetime(2008, 11, 9, tzinfo=UTC)
"""Where the first window begins: before the logs, which may begin within it."""
PATTERN = r"(?P<time>\d{6} \d{6}) \d+ \w+ (?P<component>\S+): (?P<message>.*)"
TIME_FORMAT = "%y%m%d %H%M%S"
LINE = re.compile(PATTERN)
LOGS = ms.windows.Logs(pattern=PATTERN, ts="time", time_format=TIME_FORMAT)

_BEGUN = re.compile(r"Receiving block (\S+) src: /([\d.]+):\d+ dest: /([\d.]+):\d+")
_ENDED = re.compile(r"Received block (\S+) (?:of size \d+ from /([\d.]+)|src: /([\d.]+):\d+ dest)")

Told = list[Any]
"""A line about a block: when, the address that it comes from, and, if it is begun, the node's."""
Histogram = list[int]


def moment(record: dict[str, str]) -> datetime:
    """When a line was written."""
    return _parsed(record["time"])


@lru_cache(maxsize=4_096)
def _parsed(text: str) -> datetime:
    return datetime.strptime(text, TIME_FORMAT).replace(tzinfo=UTC)


def block_lines(record: dict[str, str]) -> Iterator[tuple[str, list[Told]]]:
    """The lines about writing a block, by block; all others are left out."""
    message = record["message"]
    if message.startswith("Receiv"):
        at = int(moment(record).timestamp())
        if begun := _BEGUN.match(message):
            yield begun[1], [[at, begun[2], begun[3]]]
        elif ended := _ENDED.match(message):
            yield ended[1], [[at, ended[2] or ended[3], ""]]


def joined(a: list[Told], b: list[Told]) -> list[Told]:
    """All lines of a block, each once, in the order of time."""
    return [list(line) for line in sorted({tuple(line) for line in (*a, *b)})]


def paired(block: str, values: Sequence[list[Told]]) -> dict[str, Any]:
    """The writes of a block, [node, seconds], and how many lines have no partner."""
    (lines,) = values
    begun: dict[str, list[tuple[int, str]]] = defaultdict(list)
    writes: list[list[Any]] = []
    alone = 0
    # A write of less than a second begins and ends at the same time: what begins comes first.
    for at, source, node in sorted(lines, key=lambda line: (line[0], not line[2], *line[1:])):
        if node:
            begun[source].append((at, node))
        elif begun[source]:
            since, written_at = begun[source].pop(0)
            writes.append([written_at, at - since])
        else:
            alone += 1
    alone += sum(map(len, begun.values()))
    return {"writes": writes, "alone": alone}


def block_writes(**asked: Any) -> ms.windows.Job:
    """The job; `asked` is what is asked of its windows: a fidelity, a latency, other sizes."""
    sizes: dict[str, Any] = {"range": "48h", "pane": "1h", "begin": BEGIN}
    return ms.windows.Job(map=block_lines, combine=joined, reduce=paired, **{**sizes, **asked})


def bucket(seconds: int) -> int:
    return bisect_left(EDGES, seconds)


def histograms(writes: Iterable[Sequence[Any]]) -> dict[str, Histogram]:
    """The times of writes, [node, seconds], counted by node and bucket."""
    by_node: dict[str, Histogram] = {}
    for node, seconds in writes:
        by_node.setdefault(node, [0] * (len(EDGES) + 1))[bucket(seconds)] += 1
    return by_node


def suspicion(node: str, histograms: Mapping[str, Histogram]) -> dict[str, Any]:
    """Compares a node's histogram with those of the other nodes."""
    tests = [compared(histograms[node], histograms[other]) for other in histograms if other != node]
    differs = sum(test.p < LEVEL for test in tests)
    return {
        "writes": sum(histograms[node]),
        "histogram": histograms[node],
        "differs_from": differs,
        "others": len(tests),
        "farthest": max((test.distance for test in tests), default=0.0),
        "suspect": 2 * differs > len(tests),
    }


@dataclass
class Found:
    """The histograms of a window's HDFS nodes so far."""

    histograms: dict[str, Histogram] = field(default_factory=dict)
    alone: int = 0
    answered: int = 0


def nodes(event: ms.Event, slate: Found) -> Iterator[Any]:
    """Counts a window's writes by node, and compares the nodes when it is over."""
    if "over" not in event.value:
        answer = event.value["answer"]
        slate.alone += answer["alone"]
        for node, counts in histograms(answer["writes"]).items():
            known = slate.histograms.get(node, [0] * len(counts))
            slate.histograms[node] = [x + y for x, y in zip(known, counts, strict=True)]
        return
    slate.answered += 1
    if is_over(event.value["over"], slate.answered):
        window, by_node = bounds(event.value["over"]), slate.histograms
        said = {node: suspicion(node, by_node) for node in sorted(by_node)}
        for node, value in said.items():
            yield ms.emit("nodes", key=node, value={**window, **value})
        whole = {
            "nodes": len(said),
            "writes": sum(value["writes"] for value in said.values()),
            "alone": slate.alone,
            "suspects": [node for node, value in said.items() if value["suspect"]],
        }
        yield ms.emit("suspects", value={**window, **whole})
        yield ms.forget()


def application(
    name: str,
    job: ms.windows.Job,
    names: Sequence[str] = NODES,
    logs: ms.windows.Logs | None = None,
) -> ms.App:
    """The job and its comparison: with `logs` panes come from agents, without from files."""
    app = ms.App(name, order="event-time" if logs is None else "arrival")
    if logs is None:
        for node in names:
            app.source(node, ts=moment)
    app.add(job, name="writes", nodes=list(names), **({} if logs is None else {"logs": logs}))
    by = "writes.by_window"
    app.map("writes", "writes.windows", publishes=by, name="by_window")(by_window)
    for output in ("nodes", "suspects"):
        app.output(output)
    app.update(by, publishes=("nodes", "suspects"), slate=Found)(nodes)
    return app


job = block_writes()
app = application("hdfs-writes", job, logs=LOGS)
files = application("hdfs-writes-files", job)
