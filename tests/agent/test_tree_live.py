"""A tree that the root builds, of real agents on a real root without Spark, and its parent dies."""

from __future__ import annotations

import json
import signal
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from live_tree import NODES
from test_agent_live import _has, records, started, until, write

from millstream.server.lock import served_by

APP = Path(__file__).with_name("live_tree.py")


def agents(url: str) -> dict[str, dict[str, Any]]:
    with urlopen(f"{url}/agents", timeout=30) as answer:
        return {row["node"]: row for row in json.load(answer)["agents"]}


def test_a_parent_that_is_killed_costs_no_window(tmp_path: Path) -> None:
    """Eight agents, one of them the parent of the others, which is killed in the middle: the others
    get another parent, and when the killed one is started again every window is complete and has
    each record of each node once."""
    for node in NODES:
        write(tmp_path, node, range(700))
    serving = ("--store", "store", "--port", "0", "--fan-out", "1")
    with started(tmp_path, "dev", str(APP), *serving), ExitStack() as stack:
        url = until(lambda: (there := served_by(tmp_path / "store")) and there.url, tmp_path)
        until(lambda: _has(url, "counts.panes"), tmp_path)

        def start(node: str) -> Any:
            given = ("--node", node, "--log", f"{node}.log*", "--state", f"state-{node}")
            more = ("--root", url, "--serve", "0")
            return stack.enter_context(started(tmp_path, "agent", str(APP), *given, *more))

        processes = {"n0": start("n0")}
        until(lambda: "n0" in agents(url), tmp_path)
        processes.update({node: start(node) for node in NODES[1:]})
        until(lambda: len(agents(url).get("n0", {}).get("children", ())) == 7, tmp_path)
        for node in NODES:
            write(tmp_path, node, range(700, 1_300))
        until(lambda: len(records(url, "counts.windows")) >= 2, tmp_path)
        status = tmp_path / "state-n3" / "status.json"
        until(lambda: status.exists() and '"to":"parent n0"' in status.read_text(), tmp_path)
        processes["n0"].send_signal(signal.SIGKILL)
        processes["n0"].wait()
        for node in NODES:
            write(tmp_path, node, range(1_300, 2_001))
        until(lambda: "n0" not in {row["parent"] for row in agents(url).values()}, tmp_path)
        until(lambda: sum(row["parent"] is not None for row in agents(url).values()) >= 6, tmp_path)
        start("n0")
        until(lambda: len(records(url, "counts.windows")) >= 5, tmp_path)
        told = [one["value"] for one in records(url, "counts.windows")]
        found = {
            (one["value"]["from"], one["key"]): one["value"]["value"]
            for one in records(url, "counts")
        }
    assert sorted((one["from"], one["why"]) for one in told) == [
        (begin, "complete") for begin in range(0, 2_000, 400)
    ]
    assert {one["residual"] for window in told for one in window["accounts"].values()} == {0}
    for begin in range(0, 2_000, 400):
        numbers = Counter(f"n{number % 7}" for number in range(begin, begin + 400))
        expected = Counter({"all": 8 * 400, **dict.fromkeys(NODES, 400)})
        expected.update({word: 8 * count for word, count in numbers.items()})
        assert {word: count for (at, word), count in found.items() if at == begin} == expected
