"""Agents in a tree that a real server builds, over HTTPS and with its token."""

from __future__ import annotations

import ssl
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from server.jobs_store import JobStore, publish, withdraw
from server.served import served
from taking_root import entry, until

from millstream.agent.delivery.outbox import Outbox
from millstream.agent.delivery.wire import Answer
from millstream.agent.network import AgentNetwork
from millstream.agent.options import AgentOptions
from millstream.agent.tree.parent_server import ChildRequest
from millstream.errors import CommandError, MillstreamError
from millstream.trees.messages import JobTicket
from millstream.windows.placed import PlacedJob

TOKEN = "t" * 20


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate of this machine's, which nobody else vouches for, with its key."""
    path = tmp_path_factory.mktemp("tls") / "machine.pem"
    words = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=machine"
    names = ["-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"]
    done = subprocess.run(
        ["openssl", *words.split(), *names, "-keyout", path.with_suffix(".key"), "-out", path],
        capture_output=True,
        check=True,
    )
    assert done.returncode == 0
    path.write_bytes(path.read_bytes() + path.with_suffix(".key").read_bytes())
    return path


@pytest.fixture
def made(tmp_path: Path) -> JobStore:
    return JobStore(tmp_path / "store")


@pytest.fixture
def url(made: JobStore, certificate: Path) -> Iterator[str]:
    """A root below which is one agent; the others are below that."""
    secret = {"token": TOKEN, "tls_cert": certificate, "tls_key": certificate}
    with served(made.path, fan_out=1, **secret) as address:
        yield address


def _hang_up(asked: ChildRequest) -> Answer:
    raise ConnectionResetError


class Agent:
    """The network of an agent, with the job of the store."""

    def __init__(
        self, made: JobStore, folder: Path, node: str, url: str, ca: Path, **more: Any
    ) -> None:
        self.said: list[str] = []
        given = {"serve": "127.0.0.1:0", "tls_cert": ca, "tls_key": ca, "ca": ca, **more}
        if given["serve"] is None:
            del given["tls_cert"], given["tls_key"]
        self.options = AgentOptions(
            node=node, patterns=("x",), root=url, state=folder, token=TOKEN, **given
        )
        self.network = AgentNetwork(self.options, self.said.append)
        self.outbox = Outbox(folder / node, 1 << 30, self.said.append)
        [placed] = [one for one in made.job_app.parts.values() if isinstance(one, PlacedJob)]
        self.link = self.network.link(placed, self.outbox)

    def start(self) -> Agent:
        self.network.start()
        self.link.start()
        return self

    @property
    def to(self) -> str:
        up = self.network.ways.up("errors")
        return "the root" if up is None else up.name

    def die(self) -> None:
        """Be gone without a word, as a process that is killed."""
        assert self.network._serving is not None
        assert self.network.membership is not None
        self.network._serving.stop()
        self.network._serving._server.answering = _hang_up
        self.network.membership._stopped = True


def agents(url: str, certificate: Path) -> dict[str, Any]:
    trusting = ssl.create_default_context(cafile=str(certificate))
    headers = {"Authorization": f"Bearer {TOKEN}"}
    answer = httpx.get(f"{url}/agents", headers=headers, verify=trusting)
    return {row["node"]: row["parent"] for row in answer.json()["agents"]}


def test_a_tree_over_https(made: JobStore, tmp_path: Path, url: str, certificate: Path) -> None:
    """The second agent is below the first and sends by it; when that one is gone without a word,
    it sends to the root at once and has another seat; all of it verified and with the token."""
    with ExitStack() as stack:
        first = Agent(made, tmp_path, "web1", url, certificate).start()
        stack.callback(first.network.stop, 0)
        until(lambda: agents(url, certificate) == {"web1": None})
        second = Agent(made, tmp_path, "web2", url, certificate, serve=None).start()
        stack.callback(second.network.stop, 0)
        until(lambda: agents(url, certificate) == {"web1": None, "web2": "web1"})
        until(lambda: second.to == "parent web1")
        second.outbox.put([entry("web2", 1, x=1)])
        until(lambda: "web2" in (first.link.parent.children() if first.link.parent else {}))
        assert second.link.status().to == "parent web1"
        first.die()
        began = time.monotonic()
        second.outbox.put([entry("web2", 2, x=1)])
        assert second.outbox.wait_empty(10), second.said
        assert time.monotonic() - began < 5
        until(lambda: second.to == "the root")
        until(lambda: agents(url, certificate)["web2"] is None)
    lost = ("no news from parent web1", "parent web1 does not answer")
    assert any(sentence.startswith(lost) for sentence in second.said)


def test_a_root_that_is_not_there_is_named(tmp_path: Path) -> None:
    """The agent says which address it tried: a wrong one is found at once."""
    said: list[str] = []
    root = "http://127.0.0.1:9"
    network = AgentNetwork(
        AgentOptions(node="web1", patterns=("x",), root=root, state=tmp_path), said.append
    )
    network.host(Host())
    network.start()
    until(lambda: said)
    network.stop(1.0)
    assert said[0] == (
        f"the root does not answer a hello: no connection to {root}: Connection refused"
    )


def test_one_that_leaves_is_missed_by_nobody(
    made: JobStore, tmp_path: Path, url: str, certificate: Path
) -> None:
    """An agent that is stopped says so, and the root does not list it any more."""
    agent = Agent(made, tmp_path, "web1", url, certificate).start()
    until(lambda: agents(url, certificate) == {"web1": None})
    agent.network.stop(2.0)
    assert agents(url, certificate) == {}


def test_a_certificate_that_is_not_trusted(made: JobStore, tmp_path: Path, url: str) -> None:
    """One sentence says what is wrong and what to do, once. Nothing is sent."""
    other = Path(__file__).parent.parent / "server" / "localhost.pem"
    agent = Agent(made, tmp_path, "web1", url, other, serve=None)
    agent.outbox.put([entry("web1", 1, x=1)])
    agent.start()
    until(lambda: agent.link.sender.paused)
    until(lambda: len(agent.said) >= 3)
    agent.network.stop(0)
    assert all("--ca" in sentence for sentence in agent.said)
    assert len(agent.said) == len(set(agent.said)) == 3, "panes, news and hello, each once"
    assert len(agent.outbox.groups()) == 1


@pytest.mark.parametrize("token", [None, "x" * 20])
def test_a_token_that_is_missing_or_wrong(
    made: JobStore, tmp_path: Path, token: str | None
) -> None:
    """The agent says what the root wants, and where to give it."""
    with served(made.path, token=TOKEN) as url:
        said: list[str] = []
        options = AgentOptions(node="web1", patterns=("x",), root=url, state=tmp_path, token=token)
        network = AgentNetwork(options, said.append)
        network.host(Host())
        network.start()
        until(lambda: said)
        network.stop(1.0)
    assert len(said) == 1
    assert said[0].startswith("the root does not answer a hello: ")
    assert said[0].endswith("; the agent takes it from --token-file or MILLSTREAM_TOKEN")


def test_options_that_cannot_be(made: JobStore, tmp_path: Path, certificate: Path) -> None:
    """A file without certificates; jobs from the root in a tree that is laid by hand."""
    none = tmp_path / "none"
    with pytest.raises(MillstreamError, match="must be a PEM file"):
        Agent(made, tmp_path, "web1", "https://127.0.0.1:1", none, serve=None)
    given = {"node": "a", "patterns": ("x",), "root": "http://x", "state": tmp_path}
    laid = AgentNetwork(AgentOptions(**given, parent=("b", "http://b")), print)
    with pytest.raises(CommandError, match="leave --parent and"):
        laid.host(Host())


class Host:
    """Runs nothing, and remembers what it was told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str]] = []
        self.packages: list[bytes] = []

    def start(self, ticket: JobTicket, definition: bytes, fetch: Callable[[str], bytes]) -> None:
        published = msgspec.json.decode(definition)
        if published.get("package"):
            self.packages.append(fetch(published["package"]))
        if ticket.version == "bad":
            raise MillstreamError("its operator has not allowed it")
        self.told.append(("start", ticket.version))

    def stop(self, name: str) -> None:
        self.told.append(("stop", name))


def test_jobs_reach_an_agent(
    made: JobStore, tmp_path: Path, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The agent starts the jobs that the root publishes for its node, and replaces them when their
    version changes. It stops jobs that are no longer published, and reports the ones that it cannot
    run."""

    publish(made, {"version": "v1", "definition": {"name": "errors"}})
    with served(made.path, token=TOKEN) as url:
        said: list[str] = []
        options = AgentOptions(node="web1", patterns=("x",), root=url, state=tmp_path, token=TOKEN)
        network, host = AgentNetwork(options, said.append), Host()
        network.host(host)
        network.start()
        assert network.membership is not None
        wake = network.membership

        def soon(expected: list[tuple[str, str]]) -> None:
            with wake._changed:
                wake._member._due = 0.0
                wake._changed.notify_all()
            until(lambda: host.told == expected)

        soon([("start", "v1")])
        publish(made, {"version": "v2", "definition": {"name": "errors"}})
        soon([("start", "v1"), ("stop", "errors"), ("start", "v2")])
        publish(made, {"version": "bad", "definition": {"name": "errors"}})
        soon([("start", "v1"), ("stop", "errors"), ("start", "v2"), ("stop", "errors")])
        until(lambda: said)
        publish(made, {"version": "v3", "definition": {"name": "errors"}})
        before = [("start", "v1"), ("stop", "errors"), ("start", "v2"), ("stop", "errors")]
        soon([*before, ("start", "v3")])
        publish(made, None)
        soon([*before, ("start", "v3"), ("stop", "errors")])
        until(lambda: said[1:])
        publish(made, {"version": "v4", "definition": {"name": "errors"}})
        soon([*before, ("start", "v3"), ("stop", "errors"), ("start", "v4")])
        withdraw(made)
        ended = [*before, ("start", "v3"), ("stop", "errors"), ("start", "v4")]
        ended.append(("stop", "errors"))
        soon(ended)
        soon(ended)
        until(lambda: said[3:])
        network.stop(1.0)
    assert said == [
        "job 'errors' cannot run here: its operator has not allowed it",
        "job 'errors' cannot run here: the root does not provide it: job 'errors' is Python, and "
        "no package of its code was given: start its agents with the application's file, or run "
        "the application with --package",
        "job 'errors' ends here: the root no longer wants it",
        "the root has no job for this node: is --node right?",
    ]


def test_a_node_that_no_job_names_is_told_so(made: JobStore, tmp_path: Path) -> None:
    """An agent whose `--node` is misspelt would otherwise wait in silence."""
    publish(made, {"version": "v1", "definition": {"name": "errors"}})
    with served(made.path, token=TOKEN) as url:
        said: list[str] = []
        options = AgentOptions(node="wbe1", patterns=("x",), root=url, state=tmp_path, token=TOKEN)
        network, host = AgentNetwork(options, said.append), Host()
        network.host(host)
        network.start()
        until(lambda: said)
        network.stop(1.0)
    assert said == ["the root has no job for this node: is --node right?"]
    assert host.told == []
