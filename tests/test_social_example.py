"""The example of feeds: its traffic, on the engine and over HTTP, leaves feeds that are right."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from itertools import islice
from pathlib import Path
from threading import Event, Thread
from typing import Any

import httpx
import pytest
from click.testing import CliRunner
from feeds.feed_runs import FeedRun, Record, brute_force, shown
from feeds.stored_feeds import FeedStore
from server.served import served

from examples import social, social_traffic
from examples.social_traffic import Step, traffic
from millstream.cli.main import main
from millstream.cli.verify_feeds import Verifying
from millstream.feeds.checks.feed_check import verify_feed
from millstream.feeds.feeds import Feeds

START = 1_700_000_000_000_000
USERS = [f"user{number}" for number in range(12)]


def options() -> dict[str, Any]:
    """Returns the options of the example."""
    found = social.app.checked().parts["feeds"]
    assert found["kind"] == "feeds"
    return {"limit": found["limit"], "memory": found["memory"]}


def record(step: Step, at: int) -> Record:
    """Returns the record of a step for feeds."""
    told: Record = {"kind": "view" if step.kind == "read" else step.kind, "at": at}
    if step.kind in ("follow", "unfollow"):
        return told | {"consumer": step.user, "producer": step.other}
    if step.kind == "read":
        return told | {"consumer": step.user, "flow": 1.0}
    return told | {"producer": step.user, "id": str(step.post), "value": step.text}


def test_its_traffic_on_the_engine() -> None:
    """After each batch all feeds are what brute force over the records says, and pairs are on both
    sides."""
    run = FeedRun(Feeds(**options()))
    steps = islice(traffic(len(USERS), seed=7), 1_500)
    records = [record(step, START + 100_000 * n) for n, step in enumerate(steps)]
    kinds = {one["kind"] for one in records}
    assert kinds == {"follow", "unfollow", "post", "edit", "delete", "view"}
    for begin in range(0, len(records), 500):
        run.batch(records[begin : begin + 500])
        for user in USERS:
            expected = brute_force(run.taken, user)
            assert shown(run.query(user).older(None, 10_000).items) == expected
    run.settle()
    tables = run.tables()
    for user in USERS:
        assert verify_feed(run.placed, tables, user, settled=True).differences == ()
    sides = [set(run.query(user).follows().values()) for user in USERS]
    assert set.union(*sides) == {"push", "pull"}


def test_the_same_for_the_same_seed() -> None:
    """The same seed gives the same traffic. Another seed gives other traffic."""
    first, again, other = (list(islice(traffic(20, seed), 300)) for seed in (1, 1, 2))
    assert first == again != other


@pytest.mark.timeout(120)
def test_its_traffic_over_http(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It stops by itself and reports how many pairs are pushed and pulled. The feeds are right."""
    stored, stop = FeedStore(tmp_path / "store", **options()), Event()
    stored.batch()

    def run() -> None:
        while not stop.wait(0.1):
            stored.batch()

    with served(stored.path) as url:
        application = Thread(target=run)
        application.start()
        try:
            social_traffic.main(["--url", url, "--seconds", "3", "--users", "10"])
        finally:
            stop.set()
            application.join()
        stored.batch()
        stored.settle()
        said = capsys.readouterr().out
        assert re.search(r"[\d,]+ posts, [\d,]+ reads", said)
        assert re.search(
            r"feeds: \d+ producers, \d+ consumers, \d+ pairs, \d+ pushed and \d+", said
        )
    verifying = Verifying(stored.path, None, None)
    assert [one for verified in verifying.consumers(None, 0) for one in verified.differences] == []
    assert verifying.words().endswith("all is well")


def test_no_server(capsys: pytest.CaptureFixture[str]) -> None:
    """The error is one sentence, without a traceback."""
    with pytest.raises(SystemExit, match="no server answers at"):
        social_traffic.main(["--url", "http://127.0.0.1:9", "--seconds", "1"])


PAGE = Path(social.__file__).parent.parent / "docs" / "feeds.md"
HERE = "http://127.0.0.1:8470"


def typed(url: str) -> list[str]:
    """Returns the commands and blocks of Python that docs/feeds.md has its readers type, in
    order."""
    text = PAGE.read_text(encoding="utf-8").replace("\\\n        ", "").replace("|\n        ", "| ")
    blocks = re.findall(r"```python\n(.*?)```|^    (\S[^\n]*)$", text, re.S | re.M)
    return [(python or command).replace(HERE, url) for python, command in blocks]


def call(words: list[str]) -> httpx.Response:
    """Makes the request of a curl command line."""
    given = iter(words)
    method, headers, body, url = "GET", dict[str, str](), None, ""
    for word in given:
        if word == "-X":
            method = next(given)
        elif word == "-H":
            name, _, value = next(given).partition(": ")
            headers[name] = value
        elif word == "-d":
            method, body = "POST", next(given)
        else:
            url = word
    return httpx.request(method, url, headers=headers, content=body)


@pytest.mark.timeout(120)
def test_the_page_of_the_docs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every command and every example of docs/feeds.md has its stated effect."""
    monkeypatch.chdir(tmp_path)
    stored = FeedStore(tmp_path / ".millstream" / "social")
    stored.batch()
    done: Counter[str] = Counter()
    with served(stored.path) as url:
        monkeypatch.setenv("MILLSTREAM_URL", url)
        for one in typed(url):
            words = [] if "\n" in one else shlex.split(one)
            if "\n" in one:
                exec(compile(one, "docs/feeds.md", "exec"), {"__name__": "page"})
                done["python"] += 1
            elif words[:2] == ["millstream", "feeds"]:
                result = CliRunner().invoke(main, words[1:])
                assert result.exit_code == 0, (one, result.output)
                done["millstream"] += 1
            elif words[0] == "printf":
                lines, _, rest = one.partition(" | curl ")
                body = "\n".join(shlex.split(lines)[2:])
                answer = call([*shlex.split(rest.replace("--data-binary @-", "")), "-d", body])
                assert answer.json()["accepted"] == 2, answer.text
                done["curl"] += 1
            elif words[0] == "curl" and "-N" not in words:
                assert call(words[1:]).status_code == 200, one
                done["curl"] += 1
            stored.batch()
            stored.settle()
    assert done == {"python": 4, "millstream": 12, "curl": 7}
    assert "hello again" in capsys.readouterr().out
