"""docs/operations.md: every command of the page, against stores that have something to show."""

from __future__ import annotations

import json
import shutil
import sqlite3
import stat
import threading
from contextlib import closing
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import httpx
import pytest
from feeds.stored_feeds import FeedStore, follow, post
from page_shell import PATIENCE, ROOT, PageShell
from server.jobs_store import JobStore, begins, data
from server.served import served, until
from test_docs import examples

OPERATIONS = "docs/operations.md"
CERTIFICATE = ROOT / "tests" / "server" / "localhost.pem"
APP = """
import millstream as ms

app = ms.App("retail")
app.source("checkins", key="user", ts="time")
app.output("counts")


@app.map("checkins", publishes="scored")
def score(event):
    yield ms.emit(value={"country": COUNTRY(event.value)})


@app.update("scored", publishes="counts")
def count(event, slate):
    slate["n"] = slate.get("n", 0) + 1
    yield ms.emit("counts", value=slate)
"""
STRICT, MILD = 'value["country"]', 'value.get("country")'
TOML = """
[app]
name = "retail"
[streams.checkins]
source = true
key = "user"
ts = "time"
[updates.count]
function = "functions:count"
subscribes = ["checkins"]
"""
RUN = "millstream dev app.py"


@pytest.fixture
def shell(tmp_path: Path) -> PageShell:
    terminal = PageShell(OPERATIONS, tmp_path)
    write_app(terminal, STRICT)
    terminal.env["MILLSTREAM_URL"] = terminal.url
    return terminal


def write_app(shell: PageShell, country: str) -> None:
    (shell.here / "app.py").write_text(APP.replace("COUNTRY(event.value)", f"event.{country}"))


def send(shell: PageShell, user: str, **more: str) -> None:
    event = {"user": user, "time": "2026-01-05T12:00:00Z", **more}
    shell.do(f"millstream send checkins --event '{json.dumps(event)}'")


def test_a_server_that_stays(shell: PageShell) -> None:
    """The run uses the server that is there, and leaves it when it ends."""
    (shell.here / "app.toml").write_text(TOML)
    function = "def count(event, slate):\n    slate['n'] = slate.get('n', 0) + 1\n"
    (shell.here / "functions.py").write_text(function)
    with shell.going("millstream serve app.toml") as serve:
        serve.wait_for(shell.url)
        send(shell, "ann")
        with shell.going("millstream run app.toml") as run:
            shell.until("millstream slates get count ann", '{"n":1}')
            assert run.interrupt() == 0
        assert httpx.get(f"{shell.url}/healthz").json()["running"] is False
        assert serve.interrupt() == 0


def test_a_token_and_tls(shell: PageShell) -> None:
    """The token that was made opens the server, and nothing else does; it is the owner's alone."""
    shell.run("(umask 077; python -c 'import secrets; print(secrets.token_urlsafe())' > token)")
    assert stat.S_IMODE((shell.here / "token").stat().st_mode) == 0o600
    for name in ("cert.pem", "key.pem"):
        (shell.here / name).write_bytes(CERTIFICATE.read_bytes())
    command = (
        "millstream run app.py --host 0.0.0.0 --token-file token "
        "--tls-cert cert.pem --tls-key key.pem"
    )
    shell.swaps["0.0.0.0"] = "127.0.0.1"
    with shell.going(command) as run:
        run.wait_for("live page and HTTP: https://")
        url = f"https://127.0.0.1:{shell.port}/status"
        token = (shell.here / "token").read_text().strip()
        right = {"Authorization": f"Bearer {token}"}
        with httpx.Client(verify=False) as client:
            assert client.get(url).status_code == 401
            assert client.get(url, headers=right).status_code == 200
        assert run.interrupt() == 0


def test_several_tokens(shell: PageShell) -> None:
    """Each allows what it was made for."""
    tokens = {
        name: shell.run(command).strip()
        for name, command in {
            "ops": "millstream tokens add tokens.toml ops --all",
            "dashboard": "millstream tokens add tokens.toml dashboard --read",
            "shop": (
                "millstream tokens add tokens.toml shop --send --stream checkins --expires 90d"
            ),
        }.items()
    }
    with shell.going("millstream serve app.py --tokens tokens.toml") as serve:
        serve.wait_for(shell.url)

        def status(name: str, method: str, path: str) -> int:
            headers = {"Authorization": f"Bearer {tokens[name]}"}
            return httpx.request(method, f"{shell.url}{path}", headers=headers).status_code

        assert [status(name, "GET", "/status") for name in tokens] == [200, 200, 403]
        assert status("dashboard", "POST", "/streams/checkins") == 403
        assert status("shop", "POST", "/streams/checkins") == 415
        assert serve.interrupt() == 0


def test_retention(shell: PageShell) -> None:
    """Variables set how long logs keep what every reader has."""
    command = 'MILLSTREAM_RETAIN_AGE=36h MILLSTREAM_RETAIN_BYTES="for ever" millstream run app.py'
    with shell.going(command) as run:
        run.wait_for("live page")
        assert run.interrupt() == 0


class Hook(BaseHTTPRequestHandler):
    """A receiver that has nothing at this address, until it has."""

    answer = 404

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(type(self).answer)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


def test_actions(shell: PageShell) -> None:
    """A refused action is given up, shown, and carried out again on request."""
    (shell.here / "alerts.py").write_text(examples("docs/tour.md")["alerts.py"])
    handler = type("Here", (Hook,), {})
    with HTTPServer(("127.0.0.1", 0), handler) as receiver:
        threading.Thread(target=receiver.serve_forever, daemon=True).start()
        where = f"http://127.0.0.1:{receiver.server_address[1]}"
        shell.swaps["https://hooks.example.org"] = where
        command = (
            "millstream run alerts.py --action notify=webhook:https://hooks.example.org/alerts"
        )
        with shell.going(command) as run:
            run.wait_for("live page")
            for _ in range(3):
                send(shell, "ann")
            shell.until("millstream actions", "0 done, 0 waiting, 1 failed")
            assert f"notify (webhook:{where}): " in shell.run("millstream actions")
            letter = json.loads(shell.run("millstream actions failed notify"))
            assert letter["error"].startswith("HTTP 404")
            handler.answer = 200  # type: ignore[attr-defined]
            shell.run("millstream actions retry notify")
            shell.until("millstream actions", "1 done, 0 waiting, 0 failed")
            assert run.interrupt() == 0
        receiver.shutdown()


def test_jobs(shell: PageShell) -> None:
    """A job from its store, and from anywhere through a server."""
    made = JobStore(shell.here / ".millstream" / "logs")
    made.tell(begins("web1", 0), data("web1", 0, records=12, total=12))
    assert shell.run("millstream jobs").startswith("errors: 3 nodes")
    board = shell.run("millstream jobs errors")
    assert "web1" in board
    with served(made.path) as url:
        shell.swaps = {"http://127.0.0.1:8470": url, **shell.swaps}
        assert "web1" in shell.run("millstream jobs errors --url http://127.0.0.1:8470")


def test_feeds(shell: PageShell) -> None:
    """The network of a store's feeds, and feeds held against a brute-force query."""
    made = FeedStore(shell.here / ".millstream" / "social")
    made.append(follow("ann", "bob"), post("bob", "1", at=10))
    made.batch()
    made.settle()
    with served(made.path) as url:
        shell.env["MILLSTREAM_URL"] = url
        assert "pair" in shell.run("millstream feeds network")
        assert shell.run("millstream feeds verify --sample 200")


def test_a_table(shell: PageShell) -> None:
    """Others read the latest value of each key while the application runs."""
    write_app(shell, MILD)
    with shell.going("millstream run app.py --sink counts=sqlite:counts.db") as run:
        run.wait_for("live page")
        send(shell, "ann", country="FR")
        file = shell.here / "counts.db"

        def rows() -> list[tuple[str, str]]:
            try:
                with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as table:
                    return table.execute('SELECT key, value FROM "counts"').fetchall()
            except sqlite3.OperationalError:  # the file or its table is still to be made
                return []

        assert until(rows, PATIENCE) == [("ann", '{"n":1}')]
        assert run.interrupt() == 0


def test_letters_and_the_store(shell: PageShell) -> None:
    """Letters are retried once the cause is fixed; the store is verified, made compact, backed
    up and made anew."""
    with shell.going(RUN) as run:
        run.wait_for("live page")
        send(shell, "ann")
        send(shell, "bob", country="FR")
        shell.until("millstream slates get count bob", '{"n":1}')
        assert run.interrupt() == 0
    shell.run("""millstream deadletters retry --function score --error "KeyError: 'country'\"""")
    write_app(shell, MILD)
    with shell.going("millstream dev app.py") as dev:
        dev.wait_for("live page")
        shell.until("millstream slates get count ann", '{"n":1}')
        assert dev.interrupt() == 0
    shell.run("millstream deadletters clear --kind late")
    shell.run("millstream verify")
    shell.run("millstream vacuum")
    shell.swaps["/backups"] = str(shell.here / "backups")
    shell.run("millstream backup /backups/retail")
    shutil.rmtree(shell.here / ".millstream")
    shell.run("millstream restore /backups/retail --store .millstream/retail")
    assert shell.do("millstream slates get count ann") == '{"n":1}\n'


def test_final(shell: PageShell) -> None:
    """The sessions of complete input come out, and the run says where it has ended event time."""
    blocks = examples("docs/tour.md")
    (shell.here / "sessions.py").write_text(blocks["sessions.py"])
    (shell.here / "clicks").mkdir()
    (shell.here / "clicks" / "1.json").write_text(blocks["clicks/1.json"])
    said = shell.run(
        "millstream run sessions.py --source clicks=json:clicks --available-now --final"
    )
    assert "event time was ended at" in said
