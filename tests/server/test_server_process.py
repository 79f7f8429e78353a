"""The server's process: how it starts, stops, and why it does not start."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx
import pytest
from raw_http import connected, ended, head, rest
from served import MadeStore, served, until

from millstream.errors import DefinitionError, MillstreamError, StoreError, StoreLocked
from millstream.server.child import ServerChild, options_in, written
from millstream.server.lock import served_at
from millstream.server.options import ServerOptions
from millstream.server.process import serve


@pytest.fixture
def store(tmp_path) -> Path:
    made = MadeStore(tmp_path / "store", {"count": "dict"})
    made.commit({"count": {f"{n}": {"x": "y" * 1_000} for n in range(10_000)}})
    return made.path


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"


def test_it_stops_when_it_is_told(store):
    """Within two seconds of the end of its stdin, with all kinds of clients still there; what was
    not sent whole is broken off."""
    child = ServerChild.start(ServerOptions(store, port=0))
    requests = ["dump HTTP/1.1", "1/watch HTTP/1.1", "1 HTTP/1.1", "1 HTT"]
    opened = []
    for request in requests:
        opened.append(socket.create_connection(("127.0.0.1", int(child.url.rpartition(":")[2])), 5))
        opened[-1].setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 18)
        opened[-1].sendall(head(child.url, f"GET /slates/count/{request}"))
    for connection in opened[:3]:
        assert connection.recv(12) == b"HTTP/1.1 200"
    began = time.monotonic()
    child.stop()
    assert time.monotonic() - began < 2
    assert child.wait() == 0
    assert b"0\r\n\r\n" not in rest(opened[0])
    for connection in opened:
        assert ended(connection)
        connection.close()


def test_a_dump_is_not_ended_by_a_stop(store):
    """If the server stops during a dump, the client sees that the dump is incomplete."""
    child = ServerChild.start(ServerOptions(store, port=0))
    with connected(child.url) as dumping:
        dumping.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 18)
        dumping.sendall(head(child.url, "GET /slates/count/dump HTTP/1.1"))
        assert dumping.recv(12) == b"HTTP/1.1 200"
        stopping = threading.Thread(target=child.stop)
        stopping.start()
        until(lambda: not listens(child.url))
        assert b"0\r\n\r\n" not in rest(dumping)
        stopping.join()
    assert child.wait() == 0


def listens(url: str) -> bool:
    try:
        with connected(url):
            return True
    except OSError:
        return False


def test_it_ends_with_its_parent(store):
    """A parent that is killed cannot tell; the child ends all the same."""
    code = (
        "import sys, time; from pathlib import Path; "
        "from millstream.server.child import ServerChild; "
        "from millstream.server.options import ServerOptions; "
        "child = ServerChild.start(ServerOptions(Path(sys.argv[1]), port=0)); "
        "print(child.pid, flush=True); time.sleep(60)"
    )
    parent = subprocess.Popen([sys.executable, "-c", code, str(store)], stdout=subprocess.PIPE)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    parent.kill()
    parent.wait()
    parent.stdout.close()
    until(lambda: not alive(child), 3.0)


def test_signals(store):
    """Ctrl-C is for the parent; SIGTERM stops it as it should."""
    child = ServerChild.start(ServerOptions(store, port=0))
    os.kill(child.pid, signal.SIGINT)
    assert httpx.get(f"{child.url}/healthz").status_code == 200
    os.kill(child.pid, signal.SIGTERM)
    assert child.wait() == 0
    assert (store / "server.lock").read_bytes() == b""
    child.stop()


def test_a_port_that_is_taken(store):
    """The error says so, and what to do."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(MillstreamError, match=rf"127.0.0.1:{port}: another program listens"):
            ServerChild.start(ServerOptions(store, port=port))


@pytest.mark.parametrize(
    ("host", "said"),
    [("192.0.2.1", "not an address of this machine"), ("no.such.host.invalid", "must be an addr")],
)
def test_an_address_that_is_not_here(store, host, said):
    """The error says that the address must be one of this machine's."""
    with pytest.raises(MillstreamError, match=said):
        serve(ServerOptions(store, host=host, port=0, token="0123456789abcdef"), None, print)


def test_one_server_a_store(store):
    """A second is refused with the address of the first; where one is can be asked."""
    assert served_at(store) is None
    with served(store) as url:
        assert json.loads((store / "server.lock").read_bytes())["url"] == url
        with pytest.raises(MillstreamError, match=rf"{url}\) serves this store already"):
            ServerChild.start(ServerOptions(store, port=0))
        assert served_at(store) == url
    assert served_at(store) is None


def test_a_server_that_was_killed_leaves_no_lock(store):
    """The contents of its file do not count."""
    child = ServerChild.start(ServerOptions(store, port=0))
    os.kill(child.pid, signal.SIGKILL)
    assert child.wait() == -signal.SIGKILL
    child.stop()
    assert b"url" in (store / "server.lock").read_bytes()
    assert served_at(store) is None
    with served(store) as url:
        assert httpx.get(f"{url}/healthz").status_code == 200


def test_looking_does_not_keep_a_server_from_starting(store):
    """A process that only asks for a server holds the lock for a moment, and the server waits for
    it."""
    stop = threading.Event()

    def looking() -> None:
        while not stop.is_set():
            served_at(store)

    looker = threading.Thread(target=looking)
    looker.start()
    try:
        with served(store) as url:
            assert served_at(store) == url
    finally:
        stop.set()
        looker.join()


def test_no_store(tmp_path):
    """The error says that there is no store, and nothing is created."""
    with pytest.raises(StoreError, match="no store is there"):
        serve(ServerOptions(tmp_path / "nothing", port=0), None, print)
    assert list(tmp_path.iterdir()) == []


def test_unsafe_options(store):
    """The options are refused before anything is started, by the process itself too."""
    unsafe = ServerOptions(store, host="0.0.0.0")
    with pytest.raises(DefinitionError, match="token"):
        ServerChild.start(unsafe)
    with pytest.raises(DefinitionError, match="token"):
        serve(unsafe, None, print)


def test_a_certificate_that_is_none(store):
    """TLS that cannot work is said at the start."""
    none = Path(__file__)
    with pytest.raises(DefinitionError, match="must be PEM files"):
        serve(ServerOptions(store, port=0, tls_cert=none, tls_key=none), None, print)
    assert served_at(store) is None


def test_options_are_passed_on_whole():
    """The options are read back as they were written, including paths."""
    options = ServerOptions(
        Path("/a b/é"),
        host="::1",
        port=0,
        token="token",
        token_file=Path("t"),
        tokens=Path("s"),
        trusted_proxies=("10.0.0.0/8",),
        access_log="-",
        tls_cert=Path("c"),
        tls_key=Path("k"),
        hosts=("x", "y:1"),
        max_body=1,
        rate=2.5,
        body_timeout=3.5,
        connections=4,
        fan_out=5,
        stall=6.5,
        backlog_bytes=7,
    )
    assert b"\n" not in written(options)
    assert options_in(written(options)) == options


def test_the_users_directory_is_not_imported(store, tmp_path, monkeypatch):
    """The server never runs what lies where it was started."""
    (tmp_path / "starlette.py").write_text("raise SystemExit('the user code ran')")
    monkeypatch.chdir(tmp_path)
    with served(Path("store")) as url:
        assert httpx.get(f"{url}/healthz").status_code == 200


def test_other_loopback_addresses(store):
    """Names and IPv6 addresses work, where they exist. The printed address works."""
    for host in ("localhost", "[::1]") if _has_ipv6() else ("localhost",):
        with served(store, host=host) as url:
            assert url.startswith(f"http://{host}:")
            assert httpx.get(f"{url}/slates").status_code == 200


def _has_ipv6() -> bool:
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


def test_in_this_process(store):
    """`serve` needs no process of its own: it says its address, and ends when told."""
    stop, ready = threading.Event(), []
    thread = threading.Thread(target=serve, args=(ServerOptions(store, port=0), stop, ready.append))
    before = sys.getswitchinterval()
    thread.start()
    try:
        url = until(lambda: ready and ready[0])
        with connected(url) as idle:
            assert httpx.get(f"{url}/slates/count/1").status_code == 200
            with pytest.raises(StoreLocked, match=f"process {os.getpid()}"):
                serve(ServerOptions(store, port=0), None, print)
            stop.set()
            thread.join(2.0)
            assert not thread.is_alive()
            assert ended(idle)
    finally:
        stop.set()
        thread.join()
    assert sys.getswitchinterval() == before
