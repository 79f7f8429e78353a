"""Block writes of an HDFS cluster: histograms against a plain count, and the faulty node."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import millstream as ms
from examples.hdfs_writes import (
    EDGES,
    LOGS,
    NODES,
    application,
    block_lines,
    block_writes,
    histograms,
    joined,
    moment,
    paired,
)
from examples.imr import hdfs_traffic
from examples.imr.hdfs_traffic import START, Cluster, address, record_of, rows, writes
from examples.imr.incomplete import drawn, messages_of, panes_of, temporal, whole
from examples.imr.write_truth import HistogramErrors, errors, measure, true_histograms

JOB = block_writes()
SMALL = Cluster(12)
"""Twelve blocks an hour, of which each of the six nodes gets six."""


def records_of(cluster: Cluster) -> dict[str, list[dict[str, str]]]:
    logs: dict[str, list[dict[str, str]]] = defaultdict(list)
    for node, _, record in rows(cluster):
        logs[node].append(record)
    return logs


def timed(records: list[dict[str, str]]) -> list[tuple[Any, int]]:
    return [(one, int(moment(one).timestamp()) * 1_000_000) for one in records]


def check(run: ms.testing.Run, cluster: Cluster) -> None:
    """The first window has the histograms of all writes that end in it, and finds the slow node."""
    assert run.dead_letters == []
    told = {one.key: one.value for one in run.stream("nodes")}
    end = START + 48 * 3_600
    made = list(writes(cluster))
    inside = [one for one in made if one.begun + one.seconds < end]
    assert {node: said["histogram"] for node, said in told.items()} == true_histograms(inside)
    assert all(said["from"] == START * 1_000_000 for said in told.values())
    assert [node for node, said in told.items() if said["suspect"]] == [address(2)]
    (whole,) = [one.value for one in run.stream("suspects")]
    counted = [whole[name] for name in ("nodes", "writes", "alone", "suspects")]
    assert counted == [6, len(inside), len(made) - len(inside), [address(2)]]
    assert run.slates("nodes") == {}


def test_the_faulty_node_is_found() -> None:
    """From files: the histograms are those of the writes, and one node differs from most."""
    app = application("writes", JOB)
    check(ms.testing.run(app, records_of(SMALL)), SMALL)


def test_agents_give_the_same() -> None:
    """The messages of agents give the same answers in the application for agents."""
    logs = records_of(SMALL)
    messages = [one for node in NODES for one in messages_of(JOB, node, timed(logs[node]))]
    check(ms.testing.run(application("writes", JOB, logs=LOGS), {"writes.panes": messages}), SMALL)


def test_nobody_is_suspect_if_no_node_is_slow() -> None:
    """A cluster without a fault."""
    run = ms.testing.run(application("writes", JOB), records_of(Cluster(12, faulty=None)))
    assert {one.key for one in run.stream("nodes")} == {address(node) for node in range(6)}
    assert not any(one.value["suspect"] for one in run.stream("nodes"))
    assert [one.value["suspects"] for one in run.stream("suspects")] == [[]]


def test_lines_without_a_partner_are_told() -> None:
    """A log in which no write has both of its lines has no histogram, and says so."""
    logs = {
        node: [one for one in log if not one["message"].startswith("Received")]
        for node, log in records_of(Cluster(2)).items()
    }
    run = ms.testing.run(application("writes", JOB), logs)
    assert run.stream("nodes") == []
    (whole,) = [one.value for one in run.stream("suspects")]
    assert (whole["writes"], whole["alone"]) == (0, 2 * 3 * 48)


REAL = [
    "081109 204815 653 INFO dfs.DataNode$DataXceiver: Receiving block blk_57 "
    "src: /10.251.30.6:33145 dest: /10.251.30.6:50010",
    "081109 204817 653 INFO dfs.DataNode$DataXceiver: Receiving block blk_57 "
    "src: /10.251.30.6:33145 dest: /10.251.30.7:50010",
    "081109 204822 567 INFO dfs.DataNode$PacketResponder: Received block blk_57 "
    "of size 67108864 from /10.251.30.6",
    "081109 204825 567 INFO dfs.DataNode$DataXceiver: Received block blk_57 "
    "src: /10.251.30.6:33145 dest: /10.251.30.7:50010 of size 67108864",
    "081109 204825 35 INFO dfs.DataNode$PacketResponder: PacketResponder 1 for block blk_57 "
    "terminating",
    "081109 204826 35 INFO dfs.FSNamesystem: BLOCK* NameSystem.addStoredBlock: blockMap updated: "
    "10.251.30.6:50010 is added to blk_57 size 67108864",
]
"""Lines in the forms that a real log has."""


def test_lines_of_a_real_log_are_read() -> None:
    """Both forms of "Received block" are read, and other lines are skipped."""
    pairs = [pair for line in REAL for pair in block_lines(record_of(line))]
    assert {block for block, _ in pairs} == {"blk_57"}
    told = [one for _, lines in pairs for one in lines]
    assert paired("blk_57", [told]) == {
        "writes": [["10.251.30.6", 7], ["10.251.30.7", 8]],
        "alone": 0,
    }
    assert paired("blk_57", [told[1:3]])["writes"] == [["10.251.30.7", 5]]
    assert paired("blk_57", [told[:2]]) == {"writes": [], "alone": 2}
    assert paired("blk_57", [told[2:]]) == {"writes": [], "alone": 2}


told_lines = st.lists(
    st.tuples(st.integers(0, 9), st.sampled_from("ab"), st.sampled_from(["", "x", "y"])).map(list),
    max_size=8,
)


@given(told_lines, told_lines, told_lines)
def test_lines_are_joined_in_any_order(a: list[Any], b: list[Any], c: list[Any]) -> None:
    """Associative and commutative, and a line that comes twice is there once."""
    assert joined(a, b) == joined(b, a)
    assert joined(joined(a, b), c) == joined(a, joined(b, c))
    assert joined(joined(a, b), b) == joined(a, b)


def test_buckets_go_up_to_their_edges() -> None:
    """A value at an edge is in the bucket below it. Values over the last edge have a bucket of
    their own."""
    found = histograms([["x", 0], ["x", 1], ["x", 7], ["x", 8], ["x", 601], ["y", 2]])
    assert found["x"] == [2, 0, 0, 0, 0, 0, 2, *[0] * (len(EDGES) - 7), 1]
    assert sum(found["y"]) == 1


def in_part(part: float) -> dict[str, HistogramErrors]:
    cluster = Cluster(60, nodes=tuple(f"n{n}" for n in range(6)))
    made = panes_of(JOB, {node: timed(log) for node, log in records_of(cluster).items()})
    first = START // 3_600
    panes = range(first, first + 48)
    every = whole(cluster.nodes, panes)
    return {
        "drawn": measure(JOB, made, every, drawn(cluster.nodes, panes, part, 5)),
        "temporal": measure(JOB, made, every, temporal(cluster.nodes, panes, part, 5)),
    }


def test_a_node_that_reports_has_its_whole_histogram() -> None:
    """Figure 12: with all panes of half of the nodes no histogram that is there is wrong; with half
    of the panes of all nodes every node has one, and they are farther off."""
    found = in_part(0.5)
    assert found["temporal"] == HistogramErrors(rejected=0.0, distance=0.0, nodes_found=0.5)
    assert found["drawn"].nodes_found == 1
    assert 0 < found["drawn"].distance < 0.2


def test_errors_are_as_defined() -> None:
    """The part that is rejected, of those that there are."""
    true = {"a": [100, 0], "b": [50, 50], "c": [1, 1]}
    said = errors(true, {"a": [0, 100], "b": [50, 50]})
    assert (said.rejected, said.distance, said.nodes_found) == (0.5, 0.5, pytest.approx(2 / 3))


def test_the_script_writes_logs_of_its_own_and_of_a_real_one(tmp_path: Path) -> None:
    """Lines for agents and the same as records for Spark; each line of a real log once."""
    made, real = tmp_path / "made", tmp_path / "real"
    hdfs_traffic.main(["--out", str(made), "--blocks", "2", "--hours", "3"])
    log = tmp_path / "hdfs.log"
    log.write_text("\n".join(REAL * 6) + "\n")
    hdfs_traffic.main(["--out", str(real), "--log", str(log)])
    lines = [line for file in sorted(real.glob("*.log")) for line in file.read_text().splitlines()]
    assert sorted(lines) == sorted(REAL * 6)
    for node in NODES:
        text = (made / f"{node}.log").read_text().splitlines()
        assert len(text) == len((made / node / "1.jsonl").read_text().splitlines()) > 1
