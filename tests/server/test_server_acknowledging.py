"""Acknowledgements with a full disk, another writer, a backlog and a kill."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from checkins import append, checkin, checkins_store, post, stored
from served import MadeStore, asked

from millstream.server.child import ServerChild
from millstream.server.options import ServerOptions
from millstream.stores.progress import SourceProgress


def test_an_application_that_is_too_far_behind(tmp_path: Path) -> None:
    """Events are turned away while too much waits, and taken again when it has been read."""
    made = checkins_store(tmp_path / "store")
    log = made.home.log_of("checkins")
    append(log, *[checkin("x" * 100)] * 20)
    with asked(made.path, backlog_bytes=1000) as client:
        answer = post(client, checkin("a"))
        assert answer.status_code == 503
        assert answer.headers["retry-after"] == "1"
        assert "behind in source 'checkins'" in answer.json()["error"]
        end = [log_size(log), 20]
        made.commit({}, sources={"checkins": SourceProgress(position=end)})
        assert post(client, checkin("a")).json()["first"] == 20


def log_size(log: Path) -> int:
    (segment,) = log.glob("*.log")
    return segment.stat().st_size


def test_a_log_that_another_process_writes(tmp_path: Path) -> None:
    """The answer names the other process; nothing is accepted."""
    made = checkins_store(tmp_path / "store")
    code = (
        "import sys; from millstream.log.writer import LogWriter; w = LogWriter(sys.argv[1]); "
        "print('up', flush=True); sys.stdin.read()"
    )
    pipe = subprocess.PIPE
    log = str(made.home.log_of("checkins"))
    with (
        subprocess.Popen([sys.executable, "-c", code, log], stdin=pipe, stdout=pipe) as other,
        asked(made.path) as client,
    ):
        assert other.stdout is not None
        assert other.stdout.readline()
        answer = post(client, checkin("a"))
        assert answer.status_code == 409
        assert str(other.pid) in answer.json()["error"]
        other.communicate()
        assert post(client, checkin("a")).json()["first"] == 0


def test_a_disk_that_refuses(tmp_path: Path) -> None:
    """When the log cannot be written, the answer is 507 and nothing was accepted."""
    log = tmp_path / "elsewhere"
    log.write_bytes(b"a file")
    made = checkins_store(tmp_path / "store", log)
    with asked(made.path) as client:
        answer = post(client, checkin("a"))
        assert answer.status_code == 507
        assert "nothing was accepted" in answer.json()["error"]
        log.unlink()
        assert post(client, checkin("b")).status_code == 200
    assert stored(log) == [checkin("b")]


def test_a_disk_that_is_full(tmp_path: Path) -> None:
    """A write that stops halfway is taken back: 507, nothing accepted, and then it goes on."""
    made = checkins_store(tmp_path / "store")
    log = made.home.log_of("checkins")
    with asked(made.path) as client:
        assert post(client, checkin("a")).status_code == 200
        server = json.loads((made.path / "server.lock").read_bytes())["pid"]
        limits = resource.prlimit(server, resource.RLIMIT_FSIZE)
        resource.prlimit(server, resource.RLIMIT_FSIZE, (log_size(log) + 100, limits[1]))
        answer = post(client, b"\n".join([checkin("b")] * 100), Idempotency_Key="b")
        assert answer.status_code == 507
        assert "nothing was accepted" in answer.json()["error"]
        assert stored(log) == [checkin("a")]
        resource.prlimit(server, resource.RLIMIT_FSIZE, limits)
        again = post(client, b"\n".join([checkin("b")] * 100), Idempotency_Key="b")
        assert (again.json()["first"], again.json()["repeated"]) == (1, False)
    assert stored(log) == [checkin("a")] + [checkin("b")] * 100


def test_a_torn_tail_is_said(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The rest of an interrupted append is cut off, with a line on stderr."""
    made = checkins_store(tmp_path / "store")
    log = made.home.log_of("checkins")
    append(log, checkin("a"))
    (segment,) = log.glob("*.log")
    with segment.open("ab") as file:
        file.write(b"half of a block")
    with asked(made.path) as client:
        assert post(client, checkin("b")).json()["first"] == 1
    said = capfd.readouterr().err
    assert said.startswith(f"millstream: log {log}: ")
    assert "15 bytes" in said


def test_a_store_of_no_application(tmp_path: Path) -> None:
    """Before a run has described its application, there are only the streams of every one."""
    made = MadeStore(tmp_path / "store", {})
    with asked(made.path) as client:
        answer = post(client, checkin("a"))
        assert answer.status_code == 404
        assert [one["name"] for one in client.get("/streams").json()["streams"]] == [
            "late",
            "deadletters",
            "dropped",
        ]


def test_killed_right_after_the_answer(tmp_path: Path) -> None:
    """Acknowledged records are there after SIGKILL, and a repeat then counts once."""
    made = checkins_store(tmp_path / "store")
    options = ServerOptions(made.path, port=0)
    sent = []
    for number in range(2):
        body = b"\n".join(checkin(f"{number} {line}") for line in range(100))
        sent += body.split(b"\n")
        child = ServerChild.start(options)
        with httpx.Client(base_url=child.url) as client:
            answer = post(client, body, Idempotency_Key=f"request {number}")
            os.kill(child.pid, signal.SIGKILL)
        child.stop()
        assert answer.json()["repeated"] is False
        assert stored(made.home.log_of("checkins")) == sent
        child = ServerChild.start(options)
        try:
            with httpx.Client(base_url=child.url) as client:
                again = post(client, body, Idempotency_Key=f"request {number}")
                other = post(client, body + b"\n", Idempotency_Key=f"request {number}")
        finally:
            child.stop()
        assert again.json() == {**answer.json(), "repeated": True}
        assert other.status_code == 422
    assert stored(made.home.log_of("checkins")) == sent
