"""Many agents on one root: are all windows right, what does the root cost, how much is it asked?

Each agent is a process of its own with a log that grows. *direct*: all of them send to the root.
*tree*: some can be parents, and the root places the others below them. A window is right if it has
as many records as the logs have lines of its time.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from bench.apart import RunFailedError
from bench.bench import Bench
from bench.imr import live, nodes
from bench.imr.noise import Noise
from bench.imr.plan import Crowd
from bench.imr.watching import Watch, Window
from bench.lean import address, get_json
from bench.processes import Process, below, processes

Row = dict[str, Any]
KINDS = ("direct", "tree")
PATIENCE = 600.0
"""Seconds until all agents are there: each takes some of a core to start."""


def run(bench: Bench, plan: Crowd) -> list[Row]:
    """A row for each way."""
    names = [f"n{number:03}" for number in range(plan.agents)]
    timed = plan.timed
    jobs = [
        live.job(kind, names, range=live.duration(timed.window), pane=live.duration(timed.pane))
        for kind in KINDS
    ]
    with live.root(bench, "crowd", jobs) as root:
        return [_run(bench, plan, root, names, kind) for kind in KINDS]


def _run(bench: Bench, plan: Crowd, root: live.Root, names: list[str], kind: str) -> Row:
    folder, window = root.folder / kind, live.micros(plan.timed.window)
    folder.mkdir()
    serving = {*names[: plan.parents]} if kind == "tree" else set()
    places = [
        nodes.Node(
            node, kind, folder / f"{node}.log", folder / node, nice=10, serves=node in serving
        )
        for node in names
    ]
    with (
        Watch(root.url, kind, window) as watch,
        Noise() as shares,
        live.growing(folder, names, plan.rate),
        nodes.running(places, root.url, root.environ) as started,
    ):

        def look() -> None:
            for agent in started:
                agent.check()

        first = _all_there(root.url, kind, len(names), plan, look)
        asked, began = _requests(root.url) - watch.requests, time.monotonic()
        judged = range(first, first + plan.timed.windows)
        closed = watch.until(lambda found: _numbers(found) >= {*judged}, look, PATIENCE)
        answered = _requests(root.url) - watch.requests - asked
        requests = answered / (time.monotonic() - began)
        family = below(root.served.parts["driver"], processes())
        agents = [one for agent in started for one in below(agent.process.pid, processes())]
        depths = Counter(row["depth"] for row in get_json(root.url, "/agents")["agents"])
    truth = _lines(folder, names, window)
    found = {one.number: one for one in closed if one.number in judged}
    right = sum(found[number].told[0]["records"] == truth[number] for number in judged)
    row = {
        "what": f"{kind}, {len(names)} agents",
        "kind": kind,
        "agents": len(names),
        "windows": len(judged),
        "right": right,
        "records": sum(truth[number] for number in judged),
        "requests_per_s": requests,
        "latency_s": sum(_after_end(found[number], plan) for number in judged) / len(judged),
        "server_mib": _resident(family, root.served.parts["server"]),
        "root_mib": sum(one.resident for one in family),
        "agent_mib": sum(one.resident for one in agents) / len(started),
        "below_root": depths[1],
        "deepest": max(depths, default=0),
        **shares.row(),
    }
    bench.say(f"    {row['what']}: {right} of {len(judged)} right, {requests:.0f} requests/s")
    return row


def _all_there(url: str, job: str, agents: int, plan: Crowd, look: Any) -> int:
    """Wait until all nodes have begun; the first window that begins after that."""
    until = time.monotonic() + PATIENCE
    while True:
        look()
        accounts = get_json(url, f"/jobs/{job}")["accounts"]
        if sum(counts["read"] > 0 for counts in accounts.values()) == agents:
            return int(time.time() // plan.timed.window) + 1
        if time.monotonic() > until:
            raise RunFailedError(f"{job}: not all agents were there after {PATIENCE:.0f} s")
        time.sleep(0.5)


def _numbers(windows: list[Window]) -> set[int]:
    return {one.number for one in windows}


def _after_end(window: Window, plan: Crowd) -> float:
    """Seconds from the end of a window until it was closed."""
    return (window.closed or 0.0) - (window.number + 1) * plan.timed.window


def _lines(folder: Path, names: list[str], window: int) -> Counter[int]:
    """The lines of all logs, by window."""
    return Counter(
        int(line.partition(b" ")[0]) // window
        for node in names
        for line in (folder / f"{node}.log").read_bytes().splitlines()
    )


def _requests(url: str) -> float:
    """Returns the number of requests that the server has answered."""
    connection = HTTPConnection(*address(url), timeout=30)
    connection.request("GET", "/metrics")
    text = connection.getresponse().read().decode()
    connection.close()
    found = re.findall(r"^millstream_http_requests_total\S* (\S+)$", text, re.MULTILINE)
    return sum(map(float, found))


def _resident(family: list[Process], pid: int) -> float:
    return sum(one.resident for one in family if one.pid == pid)
