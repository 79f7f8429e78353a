"""The command `millstream agent`: a real process that is killed, stopped and measured."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from agent_runs import until
from taking_root import Root

HEAVY = ("pyspark", "numpy", "pandas", "pyarrow", "starlette", "uvicorn", "httpx", "lmdb", "rich")
APP = Path(__file__).with_name("words.py")


@pytest.fixture
def agents() -> Iterator[list[subprocess.Popen[str]]]:
    agents: list[subprocess.Popen[str]] = []
    yield agents
    for agent in agents:
        if agent.poll() is None:
            agent.kill()
            agent.communicate()


def command(folder: Path, root: Root | None, *more: str, node: str = "web1") -> list[str]:
    url = "http://127.0.0.1:9" if root is None else root.url
    given = ["agent", str(APP), "--node", node, "--log", str(folder / "app.log*"), "--root", url]
    return [sys.executable, "-m", "millstream.cli.main", *given, "--state", "state", *more]


def start(folder: Path, root: Root, *more: str) -> subprocess.Popen[str]:
    return subprocess.Popen(command(folder, root, *more), cwd=folder, stderr=-1, text=True)


BEGAN = int(time.time()) - 120
"""A log from long ago would be followed by as many empty panes."""


def line(number: int, at: float | None = None) -> str:
    ts = time.time() if at is None else at
    return json.dumps({"time": ts, "line": f"w{number} all"}) + "\n"


def test_killed_again_and_again(
    tmp_path: Path, root: Root, agents: list[subprocess.Popen[str]]
) -> None:
    """Whenever it is killed, with a log that grows and is rotated and a root that fails at times:
    every record is counted once."""
    chance, written, log = random.Random(5), 0, tmp_path / "app.log"
    for turn in range(8):
        with log.open("a") as file:
            for _ in range(500):
                file.write(line(written))
                written += 1
        root.answers.extend(chance.choice([503, "cut", 200]) for _ in range(2))
        agents.append(start(tmp_path, root))
        posts = len(root.posts)
        until(lambda posts=posts: len(root.posts) > posts or agents[-1].poll() is not None)  # type: ignore[misc]
        time.sleep(chance.random() / 4)
        agents[-1].kill()
        agents[-1].communicate()
        if turn in (2, 5):
            log.rename(tmp_path / f"app.log.{9 - turn}")
    done = subprocess.run(
        command(tmp_path, root, "--once"), cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert f"read {written:,}, on time" in done.stderr
    counted: Counter[str] = Counter()
    for (_, word), count in root.board.values.items():
        counted[word] += count
    assert counted.pop("all") == written
    assert set(counted.values()) == {1}
    assert len(counted) == written


def test_it_is_light(tmp_path: Path, root: Root, agents: list[subprocess.Popen[str]]) -> None:
    """After 200,000 lines it has less than 60 MiB and no library that it has no use for, and
    SIGTERM ends it within five seconds, with what it has done on its last line."""
    with (tmp_path / "app.log").open("w") as file:
        file.writelines(line(number, BEGAN + number / 2_000) for number in range(200_000))
    agents.append(start(tmp_path, root))
    status = tmp_path / "state" / "status.json"
    until(lambda: status.exists() and json.loads(status.read_text())["read"] == 200_000, 60)
    memory = Path(f"/proc/{agents[0].pid}/status").read_text()
    resident = int(memory.split("VmRSS:")[1].split()[0]) // 1024
    mapped = Path(f"/proc/{agents[0].pid}/maps").read_text()
    began = time.monotonic()
    agents[0].send_signal(signal.SIGTERM)
    _, said = agents[0].communicate(timeout=10)
    assert time.monotonic() - began < 5
    assert agents[0].returncode == 0
    assert "read 200,000, on time 200,000, late 0, shed 0, dead 0" in said.splitlines()[-1]
    assert resident < 60
    assert not [library for library in ("numpy", "pyarrow", "lmdb") if f"/{library}" in mapped]


def test_importing_it_loads_little() -> None:
    """The agent's modules and the command load no heavy library."""
    code = (
        "import sys, millstream.cli.main, millstream.agent.agent, millstream.agent.options\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("more", "error"),
    [
        (["--job", "count"], "did you mean 'counts'?"),
        (["--parent", "web2"], "--parent must be NODE=URL"),
        (["--children", "web2"], "--children needs --serve"),
        (
            ["--parent", "web2=http://x:1", "--serve", "0"],
            "the root places the agent and its children",
        ),
        (["--advertise", "http://x:1"], "--advertise needs --serve"),
        (["--serve", "0", "--tls-cert", "x.pem"], "--tls-cert and --tls-key go together"),
        (["--serve", "0", "--tls-cert", "x.pem", "--tls-key", "x.pem"], "both must be PEM files"),
        (["--once"], "no file matches"),
        (["--memory", "much"], "--memory must be a number of bytes"),
    ],
)
def test_mistakes(tmp_path: Path, more: list[str], error: str) -> None:
    """A wrong word of the command line is one line of error, and exit 2."""
    done = subprocess.run(
        command(tmp_path, None, *more), cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 2
    assert error in done.stderr
    assert "Traceback" not in done.stderr
