"""Trees of agents over real sockets: what children post is merged, and counts once at the root."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from taking_root import Clock, Root, entry, message, placed, until

from millstream.agent.delivery.bodies import body_of, lines
from millstream.agent.delivery.outbox import Outbox
from millstream.agent.delivery.sender import ACCEPTED_WITHIN, Sender
from millstream.agent.delivery.wire import Answer, ServerWire, stream_path
from millstream.agent.network import AgentNetwork
from millstream.agent.options import AgentOptions
from millstream.errors import CommandError

PATH = stream_path("counts.panes")
NODES = ("top", "mid", "leaf1", "leaf2")
JOB = placed(*NODES, latency="2s")


class Node:
    """The sending half of an agent: its outbox, and a parent's server if it has children."""

    def __init__(
        self,
        folder: Path,
        name: str,
        root: Root,
        up: Node | None = None,
        children: tuple[str, ...] = (),
        **options: Any,
    ) -> None:
        self.name, self.up, self.clock, self.said = name, up, Clock(), list[str]()
        given: dict[str, Any] = {"serve": "0" if children else None, "memory": 2 << 20}
        self.network = AgentNetwork(
            AgentOptions(
                node=name,
                patterns=("none",),
                root=root.url,
                state=folder,
                parent=None if up is None else (up.name, up.url),
                children=children,
                **{**given, **options},
            ),
            self.said.append,
        )
        self.outbox = Outbox(folder / name, 1 << 30, self.said.append)
        link = self.network.link(JOB, self.outbox)
        self.told, self.parent = link.decisions, link.parent
        ways = self.network.ways
        self.sender = Sender(
            self.outbox,
            JOB,
            root=ways.root,
            parent=lambda: self.parent or ways.up(JOB.name),
            decisions=self.told,
            say=self.said.append,
            clock=self.clock,
        )
        self.network.start()
        if self.parent is not None:
            self.parent.start()

    @property
    def url(self) -> str:
        assert self.network.address is not None
        host, port = self.network.address
        return f"http://{host}:{port}"

    def say(self, pane: int, until: int | None = None, **partials: int) -> None:
        """Say something of a pane."""
        self.outbox.put([entry(self.name, pane, until, "top", **partials)])
        self.sender.step()

    def hears(self) -> bool:
        """Asks for news, and returns whether the root has all messages of this node."""
        above = self.up
        while above is not None:
            above.told.poll()
            above = above.up
        self.told.poll()
        self.sender.step()
        return not self.outbox.groups()

    def stop(self) -> None:
        """Be gone, with all that is in memory."""
        self.network.stop(0)


def heard_all(*nodes: Node, later: float = 0.0) -> bool:
    """True if the root has all messages of these nodes. Moves their clocks by `later`."""
    for node in nodes:
        node.clock.now += later
    heard = [node.hears() for node in nodes]
    return all(heard)


@pytest.fixture
def ends() -> Iterator[ExitStack]:
    """Stops the registered parts at the end."""
    with ExitStack() as stack:
        yield stack


def posted(root: Root) -> list[tuple[list[str], int, dict[str, int]]]:
    """Returns for each message at the root its nodes, its pane and its values."""
    found = [json.loads(line) for _, _, body in root.posts for line in body.splitlines()]
    return [(sorted(one["nodes"]), one["pane"], one["partials"]) for one in found]


def test_a_tree_of_three_levels(tmp_path: Path, root: Root, ends: ExitStack) -> None:
    """Leaves, their parent and its parent: the root gets one message a pane with all values, and
    each node learns that its pane was accepted."""
    top = Node(tmp_path, "top", root, children=("mid",))
    mid = Node(tmp_path, "mid", root, up=top, children=("leaf1", "leaf2"))
    leaves = [Node(tmp_path, name, root, up=mid) for name in ("leaf1", "leaf2")]
    for node in (top, mid):
        ends.callback(node.stop)
    everyone = (top, mid, *leaves)
    for pane in range(3):
        for number, node in enumerate(everyone):
            node.say(pane, x=1, **{f"of {number}": pane})
    until(lambda: heard_all(*everyone))
    values = [{"x": 4, **{f"of {n}": pane for n in range(4)}} for pane in range(3)]
    assert posted(root) == [(sorted(NODES), pane, values[pane]) for pane in range(3)]
    assert {json.loads(body)["tree"] for _, _, body in root.posts} == {"top"}
    assert root.board.repeated == 0


def test_children_of_a_parent_that_died(tmp_path: Path, root: Root, ends: ExitStack) -> None:
    """Messages that it held are sent to the root by their nodes. Those that it had forwarded do not
    count twice, nor do its own panes."""
    top = Node(tmp_path, "top", root, children=("leaf1", "leaf2"))
    leaves = [Node(tmp_path, name, root, up=top) for name in ("leaf1", "leaf2")]
    everyone = (top, *leaves)
    for node in everyone:
        node.say(1, x=1)
    until(lambda: root.posts)
    for node in (top, leaves[0]):
        node.say(2, x=1)  # the second leaf is late: the parent holds these
    top.stop()
    leaves[1].say(2, x=1)
    for node in everyone:
        node.clock.now += ACCEPTED_WITHIN
    until(lambda: heard_all(*everyone, later=0.1))
    assert root.board.panes == {(node.name, pane) for node in everyone for pane in (1, 2)}
    assert root.board.values == {(1, "x"): 3, (2, "x"): 3}


def test_a_late_child_is_not_waited_for_for_ever(
    tmp_path: Path, root: Root, ends: ExitStack
) -> None:
    """After half of the latency the other panes are sent without it. Its own pane is forwarded when
    it comes."""
    top = Node(tmp_path, "top", root, children=("leaf1", "leaf2"))
    leaves = [Node(tmp_path, name, root, up=top) for name in ("leaf1", "leaf2")]
    ends.callback(top.stop)
    top.say(1, x=1)
    leaves[0].say(1, x=2)
    until(lambda: heard_all(top, leaves[0]))
    leaves[1].say(1, x=4)
    until(lambda: heard_all(leaves[1]))
    assert posted(root) == [(["leaf1", "top"], 1, {"x": 3}), (["leaf2"], 1, {"x": 4})]
    assert root.board.values == {(1, "x"): 7}


def test_a_parent_whose_own_parent_is_gone(tmp_path: Path, root: Root, ends: ExitStack) -> None:
    """The parent sends its merged messages to the root."""
    top = Node(tmp_path, "top", root, children=("mid",))
    mid = Node(tmp_path, "mid", root, up=top, children=("leaf1",))
    leaf = Node(tmp_path, "leaf1", root, up=mid)
    ends.callback(mid.stop)
    top.stop()
    mid.say(1, x=1)
    leaf.say(1, x=2)
    until(lambda: heard_all(mid, leaf))
    assert posted(root) == [(["leaf1", "mid"], 1, {"x": 3})]
    assert any("top does not answer" in sentence for sentence in mid.said)


def test_a_full_parent_refuses(tmp_path: Path, root: Root, ends: ExitStack) -> None:
    """When as much is held as memory allows children get 503, until the root takes something: flow
    control down the tree. Nothing is lost."""
    root.answers += [503]
    top = Node(tmp_path, "top", root, children=("leaf1",), memory=4_000)
    leaf = Node(tmp_path, "leaf1", root, up=top)
    ends.callback(top.stop)
    pane = 0
    while leaf.sender.paused is None:
        leaf.say(pane, x=1)
        pane += 1
    assert top.parent is not None
    assert top.parent.held <= 2_000
    assert "holds" in leaf.sender.paused
    until(lambda: heard_all(leaf, later=0.05))
    assert root.board.values == {(one, "x"): 1 for one in range(pane)}


def test_what_is_refused_for_good_is_left_to_its_nodes(
    tmp_path: Path, root: Root, ends: ExitStack
) -> None:
    """A parent drops a message that the root refuses for good, reports it, and continues."""
    root.answers += [422]
    top = Node(tmp_path, "top", root, children=("leaf1",))
    leaf = Node(tmp_path, "leaf1", root, up=top)
    ends.callback(top.stop)
    for pane in (1, 2):
        leaf.say(pane, x=pane)
        top.say(pane)
        until(lambda: root.posts)
    until(lambda: (2, "x") in root.board.values)
    assert any("their nodes send them again" in sentence for sentence in top.said)
    assert not leaf.hears(), "the first is not accepted"
    leaf.clock.now += ACCEPTED_WITHIN
    top.clock.now += ACCEPTED_WITHIN
    until(lambda: heard_all(leaf, top))
    assert root.board.values == {(1, "x"): 1, (2, "x"): 2}


def test_what_is_here_goes_on_at_the_end(tmp_path: Path, root: Root) -> None:
    """A parent that is stopped sends on what it holds, without waiting for anyone."""
    top = Node(tmp_path, "top", root, children=("leaf1",))
    Node(tmp_path, "leaf1", root, up=top).say(1, x=1)
    assert root.posts == []
    assert top.parent is not None
    top.parent.stop(20)
    assert root.board.values == {(1, "x"): 1}


def asked(node: Node, *bodies: bytes, path: str = PATH, token: str | None = None) -> Answer:
    return ServerWire(node.url, token).post(path, lines(bodies), "key")


def test_what_a_parent_does_not_take(tmp_path: Path, root: Root, ends: ExitStack) -> None:
    """A request for another job, of a foreign node or with an invalid message is refused as a
    whole, with advice."""
    top = Node(tmp_path, "top", root, children=("leaf1",))
    ends.callback(top.stop)
    good = body_of(message("leaf1", 1, tree="top", x=1))
    for path, body, status, words in (
        ("/streams/other.panes", good, 404, "a parent for the jobs counts"),
        (PATH, body_of(message("web9", 1, tree="top")), 422, "got ['web9']"),
        (PATH, body_of(message("leaf1", 3, 2, "top")), 422, "must not end at 2, before 3"),
        (PATH, b'{"pane": 1}', 422, "a message must have its panes and nodes"),
        (PATH, b"no JSON", 422, "line 2"),
        (PATH, b"\n", 200, ""),
    ):
        answer = asked(top, good, body, path=path)
        assert answer.status == status
        assert words in answer.sentence()
    assert asked(top, b"\n").status == 400
    assert asked(top, good).verdict() == "taken"


def test_a_parent_has_its_token(tmp_path: Path, root: Root, ends: ExitStack) -> None:
    """Without it nothing is taken; on an address that others can reach there must be one."""
    secret = "s" * 20
    top = Node(tmp_path, "top", root, children=("leaf1",), token=secret)
    ends.callback(top.stop)
    good = body_of(message("leaf1", 1, tree="top", x=1))
    assert [asked(top, good, token=token).status for token in (None, "other", secret)] == [
        401,
        401,
        200,
    ]
    with pytest.raises(CommandError, match="a token of at least 16 characters must guard it"):
        Node(tmp_path, "mid", root, children=("leaf1",), serve="0.0.0.0:0")
    with pytest.raises(CommandError, match="cannot listen there"):
        Node(tmp_path, "mid", root, children=("leaf1",), serve=f"127.0.0.1:{root.port}")
    with pytest.raises(CommandError, match="PORT or HOST:PORT"):
        Node(tmp_path, "mid", root, children=("leaf1",), serve="8471/tcp")


def test_a_request_that_is_none(tmp_path: Path, root: Root, ends: ExitStack) -> None:
    """A request without a length, one that is too long and one of another kind are refused. Others
    are served."""
    top = Node(tmp_path, "top", root, children=("leaf1",))
    ends.callback(top.stop)
    assert top.network.address is not None
    for headers, method, path, status in (
        ({"Transfer-Encoding": "chunked"}, "POST", PATH, 411),
        ({"Content-Length": str(1 << 40)}, "POST", PATH, 413),
        ({}, "GET", "/status", 404),
        ({}, "GET", "/healthz", 200),
    ):
        connection = HTTPConnection(*top.network.address, timeout=20)
        connection.putrequest(method, path)
        for name, value in headers.items():
            connection.putheader(name, value)
        connection.endheaders()
        assert connection.getresponse().status == status
        connection.close()
