"""docs/agents.md: a root, agents on three nodes, a tree, packages and TLS, by its own commands."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from page_shell import ROOT, PageShell, free_port

AGENTS = "docs/agents.md"
LOG = "/var/log/app.log*"
ROOT_RUN = "millstream run app.py"
PLAIN = {
    node: f"millstream agent app.py --node {node} --log '/var/log/app.log*' --root http://root:8470"
    for node in ("web1", "web2", "web3")
}
assert list(PLAIN.values()) == [
    "millstream agent app.py --node web1 --log '/var/log/app.log*' --root http://root:8470",
    "millstream agent app.py --node web2 --log '/var/log/app.log*' --root http://root:8470",
    "millstream agent app.py --node web3 --log '/var/log/app.log*' --root http://root:8470",
]
TOKEN = "a-token-of-the-root-and-agents"
CERTIFICATE = ROOT / "tests" / "server" / "localhost.pem"


@pytest.fixture
def shell(tmp_path: Path) -> PageShell:
    """With the page's application, and a log of the last minute for each node."""
    terminal = PageShell(AGENTS, tmp_path)
    terminal.swaps |= {"http://root": "http://127.0.0.1"}
    terminal.paste("app.py")
    now = int(time.time())
    for node in PLAIN:
        lines = ({"time": now - 60 + n, "text": f"{node} ready"} for n in range(61))
        (tmp_path / node).mkdir()
        (tmp_path / node / "app.log").write_text("".join(json.dumps(one) + "\n" for one in lines))
    (tmp_path / "token").write_text(TOKEN + "\n")
    (tmp_path / "token").chmod(0o600)
    return terminal


@contextmanager
def agent(shell: PageShell, node: str, command: str) -> Iterator[None]:
    """An agent with the log of its node, until the block ends; it ends well."""
    shell.swaps[LOG] = f"{shell.here}/{node}/app.log*"
    with shell.going(command) as going:
        yield
        assert going.interrupt() == 0, going.said()
        assert "Traceback" not in going.said()


@contextmanager
def root(shell: PageShell, command: str = ROOT_RUN, **env: str) -> Iterator[None]:
    with shell.going(command, env) as going:
        going.wait_for("live page")
        yield
        assert going.interrupt() == 0, going.said()


def answered(shell: PageShell) -> None:
    """Every node's word is in the answers of the windows that closed."""
    with shell.going("millstream tail words --from start") as tail:
        for node in PLAIN:
            tail.wait_for(f'"{node}"')
        tail.interrupt()


def test_a_root_and_three_agents(shell: PageShell) -> None:
    """The lines that the agents read are answered, and the job's scoreboard has all nodes."""
    with root(shell), ExitStack() as agents:
        for node, command in PLAIN.items():
            agents.enter_context(agent(shell, node, command))
        answered(shell)
        board = shell.run("millstream jobs words")
        assert all(node in board for node in PLAIN)


def test_a_tree_that_builds_itself(shell: PageShell) -> None:
    """An agent that serves is the parent of others, which have the root's token."""
    shell.env["MILLSTREAM_TOKEN"] = TOKEN
    shell.env["MILLSTREAM_FAN_OUT"] = "1"
    shell.swaps |= {"0.0.0.0:8480": f"127.0.0.1:{free_port()}"}
    serving = (
        "millstream agent app.py --node web1 --log '/var/log/app.log*' --root http://root:8470 \\\n"
        "    --serve 0.0.0.0:8480 --token-file token"
    )
    with root(shell), agent(shell, "web1", serving):
        shell.until("millstream agents", "web1")
        with agent(shell, "web2", PLAIN["web2"]), agent(shell, "web3", PLAIN["web3"]):
            shell.until("millstream agents", "1 of them a parent")
            answered(shell)


def test_a_tree_by_hand(shell: PageShell) -> None:
    """Two agents send to a third, and the windows have the words of all."""
    shell.env["MILLSTREAM_TOKEN"] = TOKEN
    port = free_port()
    shell.swaps |= {
        "0.0.0.0:8480": f"127.0.0.1:{port}",
        "http://web1:8480": f"http://127.0.0.1:{port}",
    }
    parent = (
        "millstream agent app.py --node web1 --log '/var/log/app.log*' --root http://root:8470 \\\n"
        "    --serve 0.0.0.0:8480 --children web2,web3 --token-file token"
    )
    children = {
        "web2": (
            "millstream agent app.py --node web2 --log '/var/log/app.log*' --root http://root:8470 "
            "\\\n    --parent web1=http://web1:8480 --token-file token"
        ),
        "web3": (
            "millstream agent app.py --node web3 --log '/var/log/app.log*' --root http://root:8470 "
            "\\\n    --parent web1=http://web1:8480 --token-file token"
        ),
    }
    with root(shell), agent(shell, "web1", parent), ExitStack() as agents:
        for node, command in children.items():
            agents.enter_context(agent(shell, node, command))
        answered(shell)


def test_jobs_that_reach_the_agents(shell: PageShell) -> None:
    """A package is signed, left with the root, and run by agents that have the key and no file."""
    shell.run("millstream pack --new-key release.key")
    assert (shell.here / "release.key.pub").exists()
    shell.run("millstream pack app.py --sign release.key")
    assert (shell.here / "logs.package.zip").exists()
    commands = {
        "web1": (
            "millstream agent --allow release.key.pub --node web1 \\\n"
            "    --log '/var/log/app.log*' --root http://root:8470"
        ),
        "web2": (
            "millstream agent logs.package.zip --allow release.key.pub --node web2 \\\n"
            "    --log '/var/log/app.log*' --root http://root:8470"
        ),
        "web3": PLAIN["web3"],
    }
    with root(shell, "millstream run app.py --package logs.package.zip"), ExitStack() as agents:
        for node, command in commands.items():
            agents.enter_context(agent(shell, node, command))
        answered(shell)


def test_an_agent_without_a_file_runs_no_code_unasked(shell: PageShell) -> None:
    """It asks the root for its jobs. A job in Python that is not allowed is not run."""
    command = "millstream agent --node web1 --log '/var/log/app.log*' --root http://root:8470"
    with root(shell):
        shell.swaps[LOG] = f"{shell.here}/web1/app.log*"
        with shell.going(command) as going:
            shell.until("millstream agents", "web1")
            assert going.interrupt() == 0, going.said()


def test_tls(shell: PageShell) -> None:
    """A root and a parent with certificates, which agents check."""
    for name in ("web1.pem", "web1.key", "authority.pem", "root.pem"):
        (shell.here / name).write_bytes(CERTIFICATE.read_bytes())
        (shell.here / name).chmod(0o600)
    port = free_port()
    shell.env["MILLSTREAM_TOKEN"] = TOKEN
    shell.swaps = {
        "https://root:8470": f"https://localhost:{shell.port}",
        "0.0.0.0:8480": f"127.0.0.1:{port}",
        "https://web1:8480": f"https://localhost:{port}",
        **shell.swaps,
    }
    command = (
        "millstream agent app.py --node web1 --log '/var/log/app.log*' --root https://root:8470 "
        "\\\n    --serve 0.0.0.0:8480 --advertise https://web1:8480 \\\n"
        "    --tls-cert web1.pem --tls-key web1.key --ca authority.pem --token-file token"
    )
    secured = {"MILLSTREAM_TLS_CERT": "root.pem", "MILLSTREAM_TLS_KEY": "root.pem"}
    with root(shell, **secured), agent(shell, "web1", command):
        shell.env["MILLSTREAM_URL"] = f"https://localhost:{shell.port}"
        shell.env["SSL_CERT_FILE"] = str(shell.here / "authority.pem")
        assert f"https://localhost:{port}" in shell.until("millstream agents", "web1")
