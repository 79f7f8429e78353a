"""Cassandra: the consistency of writes, and which rows share a message."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

import pytest
from cassandra import Unavailable
from cassandra.cluster import NoHostAvailable
from cassandra.metadata import KeyspaceMetadata, Metadata
from cassandra.policies import SimpleConvictionPolicy
from cassandra.pool import Host
from hypothesis import given
from hypothesis import strategies as st
from sinks.databases import cassandra_database

from fault_runs.database_servers import DatabaseServer
from millstream.databases import cassandra as cassandra_client
from millstream.databases.options import database_options
from millstream.driver.outputs.table_sinks import opened_table
from millstream.errors import SinkError
from millstream.sinks.cassandra_table import (
    TOGETHER_BYTES,
    TOGETHER_ROWS,
    first_replica,
    grouped_by_node,
)
from millstream.slate_changes import SlateChanges
from millstream.sources.address import parse_address


def change(key: str, slate: bytes | None, batch: int) -> SlateChanges:
    """The change of one slate."""
    made = SlateChanges()
    made.add(key, "", slate, batch, batch)
    return made


@pytest.mark.services
@pytest.mark.parametrize("consistency", ["ONE", "QUORUM", "ALL"])
def test_one_node_gives_every_consistency_of_one_copy(
    cassandra: DatabaseServer, monkeypatch: Any, consistency: str
) -> None:
    """Rows are put, replaced and deleted."""
    for name, value in cassandra.environ.items():
        monkeypatch.setenv(name, value)
    database = cassandra_database(cassandra, f"&consistency={consistency}")
    sink = database.sink(slate=dict)
    sink.publish_changes(0, change("a", b"{}", 0))
    sink.publish_changes(1, change("b", b"{}", 1))
    sink.publish_changes(2, change("a", b'{"n":1}', 2))
    sink.publish_changes(3, change("b", None, 3))
    sink.close()
    assert database.read("key, slate") == [{"key": "a", "slate": {"n": 1}}]


@pytest.mark.services
def test_what_the_node_acknowledged_survives_its_kill(
    cassandra: DatabaseServer, monkeypatch: Any
) -> None:
    """A node that syncs its commit log periodically loses the last 100 ms.

    The node of the tests must not, or a fault run would blame the sink.
    """
    for name, value in cassandra.environ.items():
        monkeypatch.setenv(name, value)
    database = cassandra_database(cassandra)
    sink = database.sink(slate=dict)
    for batch in range(100):
        sink.publish_changes(batch, change(str(batch), b"{}", batch))
    cassandra.kill()
    sink.close()
    cassandra.restart()
    assert len(database.read("key")) == 100


@pytest.mark.services
@pytest.mark.parametrize(("consistency", "needed"), [("ONE", 1), ("QUORUM", 2), ("ALL", 3)])
def test_a_write_has_the_consistency_of_the_address(
    cassandra: DatabaseServer, monkeypatch: Any, consistency: str, needed: int
) -> None:
    """Of three copies one node acknowledges one. A batch that needs more fails, and is written once
    it needs one again."""
    for name, value in cassandra.environ.items():
        monkeypatch.setenv(name, value)
    keyspace = f"copies_{uuid4().hex[:8]}"
    written = parse_address(
        f"cassandra:{keyspace}.t?{cassandra.options}&replication=1&consistency={consistency}"
    )
    sink = opened_table("out", written, "store", dict, None)
    set_copies(cassandra, keyspace, 3)
    if needed > 1:
        with pytest.raises(SinkError, match="batch 0 cannot be written") as refused:
            sink.publish_changes(0, change("a", b"{}", 0))
        cause = refused.value.__cause__
        assert isinstance(cause, NoHostAvailable)
        (reason,) = cause.errors.values()
        assert isinstance(reason, Unavailable)
        assert (reason.required_replicas, reason.alive_replicas) == (needed, 1)
        set_copies(cassandra, keyspace, 1)
    sink.publish_changes(0, change("a", b"{}", 0))
    sink.close()


def set_copies(server: DatabaseServer, keyspace: str, copies: int) -> None:
    """Says how many nodes are to have each row of a keyspace."""
    options = dict(parse_address(cassandra_database(server).address).options)
    opened = cassandra_client.connect(database_options("cassandra", f"{keyspace}.t", options, ""))
    try:
        opened.session.execute(
            f"ALTER KEYSPACE {keyspace} WITH replication = "
            f"{{'class': 'NetworkTopologyStrategy', 'datacenter1': {copies}}}"
        )
    finally:
        opened.close()


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, TOGETHER_BYTES + 1_000)), max_size=99)
)
def test_messages_hold_rows_of_one_node(rows: list[tuple[str, int]]) -> None:
    """Every row is in one message, in the order of its node's rows; a message is of one node and
    within the limits, or has one row."""
    numbered = [(node, size, (node, size, number)) for number, (node, size) in enumerate(rows)]
    messages = list(grouped_by_node(numbered))
    for message in messages:
        assert len({node for node, _, _ in message}) == 1
        assert len(message) <= TOGETHER_ROWS
        assert len(message) == 1 or sum(size for _, size, _ in message) <= TOGETHER_BYTES
    for node in "abc":
        sent = [row for message in messages for row in message if row[0] == node]
        assert sent == [row for _, _, row in numbered if row[0] == node]


def test_the_node_of_a_row_is_that_of_its_first_copy() -> None:
    """In a cluster of three nodes the driver's map of tokens says which; without one, none."""
    metadata = Metadata()
    hosts = [
        metadata.add_or_return_host(
            Host(f"10.0.0.{n}", SimpleConvictionPolicy, host_id=UUID(int=n))
        )
        for n in (1, 2, 3)
    ]
    nodes = [host for host, _ in hosts]
    for node in nodes:
        node.set_location_info("dc1", "r1")
    replication = {"dc1": "2"}
    metadata.keyspaces["shop"] = KeyspaceMetadata(
        "shop", True, "NetworkTopologyStrategy", replication
    )
    assert first_replica(metadata, "shop", b"ann") is None
    tokens = {node: [f"{n - 1}000000000000000000"] for n, node in enumerate(nodes)}
    metadata.rebuild_token_map("org.apache.cassandra.dht.Murmur3Partitioner", tokens)
    keys = [f"key-{n}".encode() for n in range(50)]
    assert {first_replica(metadata, "shop", key) for key in keys} == {n.host_id for n in nodes}
    for key in keys:
        copies = metadata.get_replicas("shop", key)
        assert len(copies) == 2
        assert first_replica(metadata, "shop", key) == copies[0].host_id
