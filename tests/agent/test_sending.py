"""Sending: everything in the outbox reaches the root, once and in order, through any failures."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from taking_root import Clock, Root, entry, placed, until

from millstream.agent.delivery.link_health import PROBE_EVERY
from millstream.agent.delivery.outbox import Outbox, OutboxEntry
from millstream.agent.delivery.root_decisions import RootDecisions
from millstream.agent.delivery.sender import ACCEPTED_WITHIN, Sender, key_of
from millstream.agent.delivery.ways import LaidWays
from millstream.agent.delivery.wire import ServerWire
from millstream.errors import ClientError
from millstream.trees.messages import News

CERTIFICATE = Path(__file__).parent.parent / "server" / "localhost.pem"


class Agent:
    """An outbox, and a sender that is stepped by hand."""

    def __init__(
        self, folder: Path, root: Root, parent: Root | None = None, token: str | None = None
    ) -> None:
        self.clock, self.said = Clock(), list[str]()
        self.outbox = Outbox(folder, 1 << 30, self.said.append)
        up = None if parent is None else ServerWire(parent.url, timeout=5, name="parent b")
        self.parent: ServerWire | None = up
        ways = LaidWays(ServerWire(root.url, token, name="the root"), up)
        self.told = RootDecisions(ways, placed("a", "b"), "a", self.said.append, self.clock)
        self.sender = Sender(
            self.outbox,
            placed("a", "b"),
            root=ways.root,
            parent=lambda: self.parent,
            decisions=self.told,
            say=self.said.append,
            clock=self.clock,
        )

    def put(self, *entries: OutboxEntry) -> None:
        for one in entries:
            self.outbox.put([one])

    @property
    def waiting(self) -> list[int]:
        return [one.pane for one in self.outbox.entries()]


def panes(root: Root) -> list[int]:
    return sorted(pane for _, pane in root.board.panes)


def test_all_goes_to_the_root_in_order(tmp_path: Path, root: Root) -> None:
    """A request is a group, under its own key, and what the root has is removed."""
    agent = Agent(tmp_path, root)
    agent.put(entry("a", 1, x=1), entry("a", 2))
    agent.outbox.put([entry("a", 3, x=5), entry("a", 4, 9), entry("a", 9, x=7)])
    agent.sender.step()
    assert agent.waiting == []
    assert [path for path, _, _ in root.posts] == ["/streams/counts.panes"] * 3
    assert [len(body.splitlines()) for _, _, body in root.posts] == [1, 1, 3]
    assert len({key for _, key, _ in root.posts}) == 3
    assert root.board.values == {(1, "x"): 1, (3, "x"): 5, (9, "x"): 7}
    assert agent.sender.paused is None


def test_the_thread_sends_what_is_put_in(tmp_path: Path, root: Root) -> None:
    """Each put wakes the thread. It ends when it is stopped."""
    agent = Agent(tmp_path, root)
    agent.sender.start()
    for pane in range(5):
        agent.put(entry("a", pane, x=1))
        assert agent.outbox.wait_empty(20)
    agent.sender.check()
    agent.sender.stop(20)
    assert panes(root) == [0, 1, 2, 3, 4]


def test_an_answer_that_was_lost_counts_once(tmp_path: Path, root: Root) -> None:
    """If the root's answer was lost, the same message is sent again under the same key, also by a
    restarted agent. It counts once."""
    agent = Agent(tmp_path, root)
    agent.put(entry("a", 1, x=1))
    root.answers += ["cut"]
    agent.sender.step()
    assert agent.waiting == [1]
    again = Agent(tmp_path, root)
    again.sender.step()
    assert again.waiting == []
    assert len(root.posts) == 2
    assert len(set(root.posts)) == 1
    assert root.board.values == {(1, "x"): 1}


def test_an_overloaded_root_is_given_its_time(tmp_path: Path, root: Root) -> None:
    """503 with Retry-After: nothing is sent before that, and why is said once."""
    agent = Agent(tmp_path, root)
    agent.put(entry("a", 1), entry("a", 2))
    root.answers += [503, 429]
    agent.sender.step()
    wait = agent.sender.step()
    assert len(root.posts) == 1
    assert 2.0 <= wait <= 3.0
    assert agent.sender.paused == "the root takes nothing now: the root said 503"
    agent.clock.now += 3.0
    agent.sender.step()
    agent.clock.now += 10
    agent.sender.step()
    assert (agent.waiting, agent.sender.paused) == ([], None)
    assert agent.said == [
        "the root takes nothing now: the root said 503",
        "the root takes the panes of job 'counts' again",
    ]


def test_pauses_become_longer(tmp_path: Path, root: Root) -> None:
    """A root that is away is tried again and again, ever more slowly, up to seven seconds."""
    root.stop()
    agent = Agent(tmp_path, root)
    agent.put(entry("a", 1))
    waits = []
    for _ in range(12):
        agent.sender.step()
        waits.append(agent.sender.step())
        agent.clock.now += waits[-1] + 0.001
    assert waits[0] <= 0.15
    assert 5.0 <= waits[-1] <= 7.5
    assert len(agent.said) == 1
    back = Root(root.port)
    agent.sender.step()
    back.stop()
    assert agent.waiting == []


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (404, "the root said 404; its application must have this job"),
        (413, "give the job shorter panes"),
        (422, "the root said 422"),
        ("refused", "it is odd"),
    ],
)
def test_what_can_never_be_taken_ends_the_agent(
    tmp_path: Path, root: Root, answer: int | str, words: str
) -> None:
    """The error says what to do, and nothing is removed."""
    agent = Agent(tmp_path, root)
    agent.put(entry("a", 1), entry("a", 2))
    root.answers += [answer]
    agent.sender.start()
    until(lambda: not agent.sender.running)
    with pytest.raises(ClientError, match=words) as caught:
        agent.sender.check()
    assert "the root refuses the panes of job 'counts'" in str(caught.value)
    assert agent.waiting == [1, 2]


def test_the_token_goes_with_it(tmp_path: Path) -> None:
    """A root that needs one takes nothing without it, and says so."""
    root = Root(token="s" * 20)
    agent = Agent(tmp_path, root)
    agent.put(entry("a", 1))
    with pytest.raises(ClientError, match="set MILLSTREAM_TOKEN"):
        agent.sender.step()
    agent = Agent(tmp_path, root, token="s" * 20)
    agent.sender.step()
    assert agent.waiting == []
    root.stop()


def test_tls_is_verified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A certificate that nobody vouches for is not believed; one that is trusted is."""
    root = Root(certificate=CERTIFICATE)
    agent = Agent(tmp_path, root)
    agent.put(entry("a", 1))
    agent.sender.step()
    assert "its certificate is not trusted: self-signed" in (agent.sender.paused or "")
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))
    agent.clock.now += 10
    agent.sender.step()
    assert agent.waiting == []
    root.stop()


def test_a_bad_address_is_said() -> None:
    """Before anything is sent."""
    for url in ("localhost:8470", "ftp://host", "http://", "http://host:port", "http://a:b@host"):
        with pytest.raises(ClientError, match="url"):
            ServerWire(url)
    with pytest.raises(ClientError, match="printable ASCII"):
        ServerWire("http://host", "two words")


@pytest.fixture
def parent() -> Iterator[Root]:
    """A parent that accepts messages and has no news."""
    server = Root(tells=False)
    yield server
    server.stop()


def test_by_a_parent_it_is_kept_until_accepted(tmp_path: Path, root: Root, parent: Root) -> None:
    """A message is sent to the parent once. It is only removed when the root reports that it was
    accepted."""
    agent = Agent(tmp_path, root, parent)
    agent.put(entry("a", 1, x=1), entry("a", 2, 5))
    agent.sender.step()
    agent.sender.step()
    assert (panes(parent), len(parent.posts), root.posts) == ([1, 2, 3, 4], 2, [])
    assert agent.waiting == [1, 2]
    agent.told.hear(News("root", 1, False, "store", accepted={"a": [(1, 4)], "b": [(1, 4)]}))
    agent.sender.step()
    assert agent.waiting == [2]
    agent.told.hear(News("root", 2, False, "store", accepted={"a": [(4, 5)]}))
    agent.sender.step()
    assert agent.waiting == []
    assert root.posts == []


def test_what_a_parent_has_lost_goes_to_the_root(tmp_path: Path, root: Root, parent: Root) -> None:
    """If it is not accepted in time it is sent there directly, and then it is done."""
    agent = Agent(tmp_path, root, parent)
    agent.put(entry("a", 1, x=1))
    agent.sender.step()
    agent.clock.now += ACCEPTED_WITHIN - 0.1
    assert agent.sender.step() <= 0.25
    assert root.posts == []
    agent.clock.now += 0.2
    agent.sender.step()
    assert (agent.waiting, panes(root), len(parent.posts)) == ([], [1], 1)


def test_past_a_parent_that_is_gone(tmp_path: Path, root: Root, parent: Root) -> None:
    """Its waiting messages and new ones go to the root at once. The parent is used again when it is
    back."""
    agent = Agent(tmp_path, root, parent)
    agent.put(entry("a", 1))
    agent.sender.step()
    parent.stop()
    agent.put(entry("a", 2))
    agent.sender.step()
    agent.sender.step()
    assert (agent.waiting, panes(root)) == ([], [1, 2])
    back = Root(parent.port, tells=False)
    agent.put(entry("a", 3))
    agent.sender.step()
    assert back.posts == [], "it is looked at every few seconds only"
    agent.clock.now += PROBE_EVERY
    agent.put(entry("a", 4))
    agent.sender.step()
    back.stop()
    assert (panes(back), panes(root)) == ([4], [1, 2, 3])


def test_past_a_parent_that_takes_nothing(tmp_path: Path, root: Root, parent: Root) -> None:
    """Its 503 is flow control, and is heeded for ten seconds; then the root is asked itself."""
    agent = Agent(tmp_path, root, parent)
    agent.put(entry("a", 1), entry("a", 2), entry("a", 3))
    parent.answers += [503] * 100
    for _ in range(5):
        agent.sender.step()
        agent.clock.now += 1.9
    assert root.posts == []
    assert agent.sender.paused == "parent b takes nothing now: the root said 503"
    agent.clock.now += 1
    agent.sender.step()
    agent.sender.step()
    assert (agent.waiting, panes(root)) == ([], [1, 2, 3])


def test_what_a_parent_refuses_for_good_goes_to_the_root(
    tmp_path: Path, root: Root, parent: Root
) -> None:
    """The message may be of a tree that the agent was in before. New messages go to the parent
    again."""
    agent = Agent(tmp_path, root, parent)
    agent.put(entry("a", 1), entry("a", 2), entry("a", 3))
    parent.answers += [422, 422]
    agent.sender.step()
    agent.sender.step()
    assert (panes(root), panes(parent), agent.waiting) == ([1, 2], [3], [3])
    assert len(agent.said) == 1
    assert "parent b refuses" in agent.said[0]
    assert agent.said[0].endswith("for now they go to the root")


def test_where_a_node_begins_is_told_to_the_root_itself(
    tmp_path: Path, root: Root, parent: Root
) -> None:
    """The beginning is not a pane that could be accepted, and a parent might lose it."""
    agent = Agent(tmp_path, root, parent)
    agent.put(entry("a", 7, 7), entry("a", 7, x=1))
    agent.sender.step()
    assert (len(root.posts), len(parent.posts)) == (1, 1)
    assert agent.waiting == [7]


def test_what_was_accepted_before_a_start_is_not_sent_again(
    tmp_path: Path, root: Root, parent: Root
) -> None:
    """The root's news also counts for messages that an earlier process sent."""
    Agent(tmp_path, root, parent).put(entry("a", 1))
    parent.told.append({"accepted": {"pane": 1, "until": 2, "nodes": ["a"]}})
    agent = Agent(tmp_path, root, parent)
    agent.told.poll()
    agent.sender.step()
    assert (agent.waiting, root.posts, parent.posts) == ([], [], [])


def test_keys_are_short_and_plain_whatever_the_names() -> None:
    """At most 200 printable ASCII characters, and another one for other content."""
    one = OutboxEntry("zähler " * 30, "knoten " * 30, 1, 2, b"{}", None)
    key = key_of([one], b"a")
    assert len(key) <= 200
    assert key.isascii()
    assert key.isprintable()
    assert key != key_of([one], b"b")
