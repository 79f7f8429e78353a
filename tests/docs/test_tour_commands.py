"""docs/tour.md, followed from its first command to its last."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import httpx
import pyarrow.parquet as pq
import pytest
from page_shell import PATIENCE, ROOT, PageShell
from server.served import served, until

TOUR = "docs/tour.md"
RUN_FILES = "millstream run app.py --source checkins=json:data/checkins --available-now"
GET = "millstream slates get count Walmart"


@pytest.fixture
def shell(tmp_path: Path) -> PageShell:
    """In the folder of a new application."""
    terminal = PageShell(TOUR, tmp_path)
    terminal.run("millstream new retail")
    terminal.here = tmp_path / "retail"  # cd retail
    return terminal


def shown(after: str, lines: int) -> str:
    """Returns the output that the tour shows below a command."""
    text = (ROOT / TOUR).read_text()
    rest = text[text.index(after) + len(after) :].splitlines()[1 : lines + 1]
    return "\n".join(line[4:] for line in rest) + "\n"


def test_files(shell: PageShell) -> None:
    """A new application: checked, drawn, run over its files, its slates read; then a bad file."""
    block = re.search(r"```python\n(import millstream.*?)```", (ROOT / TOUR).read_text(), re.S)
    assert block is not None
    code = (shell.here / "app.py").read_text()
    assert (
        block[1].replace('"Walmart", "Best Buy", "JCPenney"', "")
        in code.replace('"Walmart", "Best Buy", "JCPenney"', "")
        or "def recognise(event)" in code
    )
    assert shell.run("millstream check app.py") == shown("$ millstream check app.py", 1)
    drawn = shell.run("millstream graph app.py")
    assert "[recognise]" in drawn
    assert "retail: arrival order" in drawn

    shell.run(RUN_FILES)
    assert shell.run(GET) == shown("$ " + GET, 1)
    shell.run(RUN_FILES)
    assert shell.run(GET) == '{"count":10}\n'
    scanned = shell.run("millstream slates scan count --prefix W --limit 10").splitlines()
    assert [json.loads(line)["key"] for line in scanned] == ["Walmart"]
    shell.run("millstream slates dump count --to parquet:counts")
    assert pq.read_table(shell.here / "counts").num_rows == 3
    shell.paste("reader.py")
    assert shell.do("python reader.py") == "{'count': 10}\n"

    shell.run(
        'printf \'%s\\n\' \'{"user": "eve", "time": "2026-01-05T12:00:00Z"}\' '
        '\'{"user": "eve", "tim\' > bad'
    )
    shell.run("mv bad data/checkins/bad.json")
    assert "2 of 2 deliveries became dead letters" in shell.run(RUN_FILES, code=1)
    letters = shell.run("millstream deadletters")
    stable = re.compile(r"\d{4}-\d\d-\d\dT[0-9:.]+Z|\(.*/data|:\d+ in recognise", re.M)
    assert stable.sub("", letters) == stable.sub("", shown("    millstream deadletters\n", 6))

    shell.paste("app.toml")
    shell.run("millstream run app.toml --available-now")
    assert shell.run(GET) == '{"count":10}\n'


def test_edit_and_run(shell: PageShell) -> None:
    """`dev` accepts the sent events, and keeps its slates when the file has changed."""
    with shell.going("millstream dev app.py --store dev.store") as dev:
        dev.wait_for("live page")
        shell.env["MILLSTREAM_URL"] = shell.url
        shell.run("millstream send checkins data/checkins/*.json")
        read = f"{GET} --store dev.store"
        shell.until(read, '{"count":10}')
        code = (shell.here / "app.py").read_text()
        (shell.here / "app.py").write_text(
            code.replace('get("count", 0) + 1', 'get("count", 0) + 5')
        )
        dev.wait_for("millstream: the application has changed; loading it again")
        shell.do("millstream send checkins data/checkins/1.json")
        shell.until(read, '{"count":')
        assert dev.interrupt() == 0


def test_live(shell: PageShell) -> None:
    """Sent by the command, by curl and from Python; read while it changes; served alone after."""
    shell.env["MILLSTREAM_URL"] = shell.url
    with shell.going("millstream run app.py --store live.store") as run:
        run.wait_for(f"live page and HTTP: {shell.url}")
        sent = shell.run("millstream send checkins data/checkins/*.json")
        assert sent == shown("$ millstream send checkins data/checkins/*.json", 1)
        one = json.loads(
            shell.run(
                "curl http://127.0.0.1:8470/streams/checkins -H 'Content-Type: application/json' "
                '\\\n    -d \'{"user": "ann", "time": "2026-01-05T12:00:00Z", "venue": "Walmart"}\''
            )
        )
        assert one["accepted"] == 1
        many = json.loads(
            shell.run(
                "curl http://127.0.0.1:8470/streams/checkins -H "
                "'Content-Type: application/x-ndjson' \\\n    --data-binary @data/checkins/1.json"
            )
        )
        assert many["accepted"] == 10
        refused = 'millstream send checkins --event \'{"user": "ann"}\''
        said = shell.run(refused, code=1)
        assert all(line in said for line in shown("$ " + refused, 2).splitlines())

        shell.until(f"{GET} --store live.store", '{"count":14}')
        slate = json.loads(shell.run("curl http://127.0.0.1:8470/slates/count/Walmart"))
        assert slate["slate"] == {"count": 14}
        page = shell.run("curl 'http://127.0.0.1:8470/slates/count?prefix=W&limit=10'")
        assert [one["key"] for one in json.loads(page)["slates"]] == ["Walmart"]
        dumped = shell.run("curl http://127.0.0.1:8470/slates/count/dump").splitlines()
        assert len(dumped) == 3
        with shell.going("millstream slates watch count Walmart") as watch:
            watch.wait_for('"count":14')
            shell.paste("client.py")
            code = (shell.here / "client.py").read_text()
            (shell.here / "client.py").write_text(
                code.replace("ms.Client()", f"ms.Client({shell.url!r})") + "        break\n"
            )
            assert shell.do("python client.py").startswith("1 ")
            watch.wait_for('"count":15')
            assert watch.interrupt() == 0
        with shell.going("millstream tail checkins --from -3") as tail:
            tail.wait_for("12:05:00Z")
            assert tail.interrupt() == 0
        assert run.interrupt() == 0
    with shell.going("millstream serve app.py --store live.store") as serve:
        serve.wait_for(shell.url)
        assert httpx.get(f"{shell.url}/healthz").json()["running"] is False
        slate = json.loads(shell.run("curl http://127.0.0.1:8470/slates/count/Walmart"))
        assert slate["slate"] == {"count": 15}
        assert serve.interrupt() == 0


def test_killed(shell: PageShell) -> None:
    """None of the check-ins that were sent while the application was killed is lost or doubled."""
    shell.swaps |= {"3_000": "150", "retries=None": f"{shell.url!r}, retries=None"}
    shell.paste("feed.py")
    read = "millstream slates get count Walmart --store kill.store"
    with shell.going("millstream run app.py --store kill.store") as run:
        run.wait_for("live page")
        with _fed(shell) as feeding:
            shell.until(read, '"count"')
            shell.run("kill -9 $(cat kill.store/lock)")
            run.ends()
            before = json.loads(shell.run(read))["count"]
            assert 0 < before < 150
            with shell.going("millstream run app.py --store kill.store") as again:
                again.wait_for("live page")
                feeding.join(PATIENCE)
                shell.until(read, '{"count":150}')
                assert again.interrupt() == 0


@contextmanager
def _fed(shell: PageShell) -> Iterator[threading.Thread]:
    feeding = threading.Thread(target=shell.do, args=("python feed.py",))
    feeding.start()
    try:
        yield feeding
    finally:
        feeding.join(PATIENCE)


def test_outputs(shell: PageShell) -> None:
    """A table of the most popular pages, sessions as Parquet, and the log of sessions tailed."""
    shell.paste("popular.toml", "clicks/1.json", "sessions.py")
    command = "millstream run popular.toml --source clicks=json:clicks --sink best=sqlite:best.db"
    with shell.going(command) as run:
        run.wait_for("live page")

        def best() -> str:
            with closing(sqlite3.connect(f"file:{shell.here}/best.db?mode=ro", uri=True)) as table:
                try:
                    return str(table.execute('select value from "best"').fetchall())
                except sqlite3.OperationalError:
                    return ""  # it is not made yet

        until(lambda: (shell.here / "best.db").exists() and "/shoes" in best(), PATIENCE)
        assert run.interrupt() == 0
    shutil.rmtree(shell.here / ".millstream")
    shell.run(
        "millstream run sessions.py --source clicks=json:clicks --sink sessions=parquet:out --final"
    )
    rows = pq.read_table(shell.here / "out").to_pylist()
    assert sorted((row["key"], json.loads(row["value"])["clicks"]) for row in rows) == [
        ("ann", 3),
        ("bob", 1),
        ("bob", 1),
    ]
    with served(shell.here / ".millstream" / "sessions") as url:
        shell.env["MILLSTREAM_URL"] = url
        with shell.going("millstream tail sessions --from start") as tail:
            tail.wait_for('"bob"')
            assert tail.interrupt() == 0


class Hook(BaseHTTPRequestHandler):
    """Takes what a webhook sends."""

    came: list[bytes]

    def do_POST(self) -> None:
        self.came.append(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


def test_side_effects(shell: PageShell) -> None:
    """The same alerts to standard error, and with a store of its own to a webhook."""
    shell.paste("alerts.py")
    with shell.going(
        "millstream run alerts.py --source checkins=json:data/checkins --action notify=stderr"
    ) as run:
        run.wait_for('"action":"notify"')
        assert run.interrupt() == 0
    states = shell.do("millstream actions")
    assert "notify (stderr)" in states
    shutil.rmtree(shell.here / ".millstream")
    came: list[bytes] = []
    handler = type("Here", (Hook,), {"came": came})
    with HTTPServer(("127.0.0.1", 0), handler) as receiver:
        serving = threading.Thread(target=receiver.serve_forever, daemon=True)
        serving.start()
        shell.swaps["127.0.0.1:9000"] = f"127.0.0.1:{receiver.server_address[1]}"
        with shell.going(
            "millstream run alerts.py --source checkins=json:data/checkins "
            "--action notify=webhook:http://127.0.0.1:9000/hook"
        ) as run:
            run.wait_for("live page")
            until(lambda: came, PATIENCE)
            assert run.interrupt() == 0
        receiver.shutdown()
    assert json.loads(came[0])["action"] == "notify"
