"""Hosts in network namespaces reach each other, can be cut off and ended, and leave nothing."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fault_runs.hosts import ETC, Host, HostsUnavailable, hosts
from fault_runs.processes import Started, wait_until

pytestmark = pytest.mark.cluster
LISTEN = (
    "import http.server, sys; "
    "http.server.HTTPServer((sys.argv[1], 8000), http.server.SimpleHTTPRequestHandler)"
    ".serve_forever()"
)
ASK = (
    "import socket, sys; s = socket.socket(); s.settimeout(0.5); "
    "sys.exit(s.connect_ex((sys.argv[1], 8000)) != 0)"
)


def reaches(host: Host, address: str) -> bool:
    """True if something answers on port 8000 of an address, as seen from a host."""
    command = host.command([sys.executable, "-c", ASK, address])
    return subprocess.run(command).returncode == 0


def serve(host: Host, folder: Path) -> Started:
    """A server on a host, once it answers."""
    started = host.start([sys.executable, "-c", LISTEN, host.address], folder / "said")
    assert wait_until(lambda: reaches(host, host.address), started)
    return started


def known_namespaces() -> set[str]:
    return set(subprocess.check_output(["ip", "netns", "list"], text=True).split("\n"))


def test_hosts_reach_each_other_and_nobody_else(tmp_path: Path) -> None:
    """Each by the address and the name of the other; they have no way out, and this machine has
    none to them."""
    with hosts(tmp_path, ["one", "two"]) as network:
        one, two = network["one"], network["two"]
        serve(two, tmp_path)
        assert reaches(one, two.address)
        assert reaches(one, "two")
        assert not reaches(one, one.address)
        routes = subprocess.check_output(one.command(["ip", "route"]), text=True)
        assert "default" not in routes
        assert two.address not in subprocess.check_output(["ip", "route"], text=True)
        assert subprocess.check_output(one.command(["hostname"]), text=True).strip() == "one"


def test_a_host_is_cut_off_and_comes_back(tmp_path: Path) -> None:
    """From the others, not from itself."""
    with hosts(tmp_path, ["one", "two"]) as network:
        one, two = network["one"], network["two"]
        serve(two, tmp_path)
        two.cut_off()
        assert not reaches(one, two.address)
        assert reaches(two, two.address)
        two.reconnect()
        assert wait_until(lambda: reaches(one, two.address), patience=10)


def test_a_host_is_killed_and_frozen(tmp_path: Path) -> None:
    """All of its processes, and no others."""
    with hosts(tmp_path, ["one", "two"]) as network:
        one, two = network["one"], network["two"]
        first, second = serve(one, tmp_path), serve(two, tmp_path)
        assert one.processes() == [first.process.pid]
        two.freeze()
        stat = Path(f"/proc/{second.process.pid}/stat")
        assert wait_until(lambda: stat.read_text().rpartition(")")[2].split()[0] == "T", patience=5)
        two.thaw()
        assert reaches(one, two.address)
        two.kill()
        assert second.wait(5) == -9
        assert first.process.poll() is None
        assert not reaches(one, two.address)
        (two.disk / "file").write_text("x")
        two.wipe()
        assert [entry.name for entry in two.disk.iterdir()] == ["tmp"]


def _fail_on(host: Host, folder: Path) -> None:
    host.start(["sleep", "100"], folder / "said")
    raise ZeroDivisionError


def test_nothing_is_left(tmp_path: Path) -> None:
    """Neither after a failure inside the block, nor of a run that was ended by force: the next one
    removes what is left of it, and what still runs there."""
    before, files = known_namespaces(), set(ETC.glob("millstream-*"))
    with (
        pytest.raises(ZeroDivisionError),
        hosts(tmp_path / "a", ["one"]) as network,
    ):
        _fail_on(network["one"], tmp_path)
    assert known_namespaces() == before
    abandoned = (
        "import os, signal, sys; from pathlib import Path; from fault_runs.hosts import hosts\n"
        "with hosts(Path(sys.argv[1]), ['one']) as network:\n"
        "    started = network['one'].start(['sleep', '100'], Path(sys.argv[1]) / 'said')\n"
        "    print(started.process.pid, flush=True)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    path = os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", abandoned, str(tmp_path)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": path},
    )
    left = int(done.stdout)
    assert known_namespaces() - before
    until = time.monotonic() + 10
    while not Path(f"/proc/{left}/cmdline").read_bytes().startswith(b"sleep"):
        assert time.monotonic() < until  # it becomes that in some steps
    with hosts(tmp_path / "b", ["one"]):
        assert not Path(f"/proc/{left}/cmdline").exists() or not (
            Path(f"/proc/{left}/cmdline").read_bytes()
        )
    assert known_namespaces() == before
    assert set(ETC.glob("millstream-*")) == files


def test_it_says_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there can be no hosts, the tests fail, and say what to do."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with (
        pytest.raises(HostsUnavailable, match=r"no command `ip`; .*apt-get install iproute2"),
        hosts(tmp_path, ["one"]),
    ):
        pass
