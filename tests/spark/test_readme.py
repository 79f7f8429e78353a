"""The first five minutes, as a user has them: through the command line, in processes of their own.

The README's blocks are taken from it as they stand; the comment before a block names its file.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

pytestmark = pytest.mark.spark
README = Path(__file__).parent.parent.parent / "README.md"
BLOCK = re.compile(r"<!-- example: (\S+) -->\n```\w*\n(.*?)```", re.DOTALL)
COMMANDS, OUTPUT = "commands", "output"
RUN, SEND, READ, CLIENT = "run", "send", "read", "client"
NO_FILES = (COMMANDS, OUTPUT, RUN, SEND, READ, CLIENT)
URL = "http://127.0.0.1:8470"
"""The address of the README's server. The test's server has another one."""
PATIENCE = 200.0


def environment() -> dict[str, str]:
    """That of a user who has Millstream in it."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("MILLSTREAM_", "PYTHONPATH"))}
    env["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), env["PATH"]])
    return env


def shell(here: Path, commands: str) -> subprocess.CompletedProcess[str]:
    """Run commands as a user does."""
    return subprocess.run(
        ["sh", "-e", "-c", commands],
        cwd=here,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=240,
    )


def said(here: Path, commands: str) -> str:
    """Returns the output of commands. All must succeed, without messages of Spark and without a
    traceback."""
    done = shell(here, commands)
    assert done.returncode == 0, done.stderr
    assert not re.search(r"Traceback|WARN|ERROR", done.stderr), done.stderr
    return done.stdout


def pasted(folder: Path) -> dict[str, str]:
    """The README's blocks, those that are files written into the folder."""
    blocks = dict(BLOCK.findall(README.read_text()))
    assert {"retail.py", "test_retail.py", *NO_FILES} <= set(blocks)
    for name, text in blocks.items():
        if name not in NO_FILES:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
    return blocks


@contextmanager
def running(here: Path, command: str) -> Iterator[subprocess.Popen[str]]:
    """A command that goes on, at any port; ended by force if the test does not end it."""
    with (here / "said").open("w") as said_here:
        process = subprocess.Popen(
            ["sh", "-c", f"exec {command}"],
            cwd=here,
            env={**environment(), "MILLSTREAM_PORT": "0"},
            stderr=said_here,
            start_new_session=True,
            text=True,
        )
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def until(process: subprocess.Popen[str], here: Path, commands: str, wanted: str) -> str:
    """Repeats commands until their output has the text, and returns it."""
    deadline = time.monotonic() + PATIENCE
    while True:
        told = shell(here, commands).stdout
        if wanted in told:
            return told
        assert process.poll() is None, (here / "said").read_text()
        assert time.monotonic() < deadline, told
        time.sleep(0.1)


def shown(text: str) -> list[str]:
    """The lines of an indented block of the README that begin so."""
    return [line[4:] for line in README.read_text().splitlines() if line.startswith(f"    {text}")]


def stable(answer: str) -> dict[str, Any]:
    """Returns an answered slate without the parts that depend on the time of the request."""
    found: dict[str, Any] = json.loads(answer)
    return {name: value for name, value in found.items() if name not in ("batch", "age")}


def test_the_readme_runs_live(tmp_path: Path) -> None:
    """The README's run takes what its commands send, answers as it says, and ends well."""
    blocks = pasted(tmp_path)
    with running(tmp_path, blocks[RUN]) as process:
        told = until(process, tmp_path, "cat said", "live page and HTTP: http")
        first = told.splitlines()[:2]
        url = first[1].split()[-1]
        assert "\n".join(first).replace(url, URL).splitlines() == shown("millstream: ")

        sent = said(tmp_path, blocks[SEND].replace(URL, url)).splitlines()
        assert sent == shown("accepted") + shown('{"stream"')
        read = blocks[READ].replace(URL, url)
        answer = until(process, tmp_path, read, '"count":3')
        assert [stable(answer)] == [stable(line) for line in shown('{"update"')]

        client = blocks[CLIENT].replace("Client()", f"Client({url!r})")
        said(tmp_path, f"python -c {shlex.quote(client)}")
        watched = "millstream slates watch count Walmart --limit 1"
        assert '"slate":{"count":4}' in until(process, tmp_path, watched, '"count":4')

        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 0
    told = (tmp_path / "said").read_text()
    assert re.search(r"^millstream: 5 events in \d+ batch", told, re.MULTILINE), told
    assert not re.search(r"Traceback|WARN|ERROR", told), told
    assert said(tmp_path, "millstream slates get count Walmart") == '{"count":4}\n'


def test_the_readme_runs_as_pasted(tmp_path: Path) -> None:
    """The README's files, commands and test give what it says."""
    blocks = pasted(tmp_path)
    assert said(tmp_path, blocks[COMMANDS]) == blocks[OUTPUT]
    assert "1 passed" in said(tmp_path, "python -m pytest -q -p no:cacheprovider test_retail.py")
    assert "[recognise]" in said(tmp_path, "millstream graph retail.py")


def test_a_new_application(tmp_path: Path) -> None:
    """`millstream new` writes an application that checks, draws, tests and runs; its slates are
    what its README says, and a bad record is told and stops nothing."""
    assert "millstream run app.py" in said(tmp_path, "millstream new shop")
    here = tmp_path / "shop"
    assert "2 passed" in said(here, "python -m pytest -q -p no:cacheprovider")
    (here / "data" / "checkins" / "4.json").write_text('{"user": "zoe", "time": 17}\nno JSON\n')
    assert said(here, "millstream check app.py").startswith("shop: fine: 1 source, 1 map, 1 update")
    assert "[count]" in said(here, "millstream graph app.py")

    run = shell(here, "millstream run app.py --source checkins=json:data/checkins --available-now")
    assert (run.returncode, run.stdout) == (0, ""), run.stderr
    first, *_, summary, hint = run.stderr.splitlines()
    assert first == "millstream: app shop, store .millstream/shop, starting ..."
    assert re.match(r"millstream: 32 events in 1 batch, .* 2 dead letters; store .*shop", summary)
    assert hint.endswith("millstream deadletters --store .millstream/shop")

    slate = said(here, "millstream slates get count Walmart")
    assert slate == '{"count":10}\n'
    assert f"The slate is `{slate.strip()}`" in (here / "README.md").read_text()
    lines = said(here, "millstream slates scan count").splitlines()
    rows = [json.loads(line) for line in lines]
    assert [row["key"] for row in rows] == ["Best Buy", "JCPenney", "Walmart"]
    said(here, "millstream slates dump count --to parquet:counts")
    dumped = pq.read_table(here / "counts").to_pylist()
    assert [json.loads(row["slate"]) for row in dumped] == [row["slate"] for row in rows]

    letters = said(here, "millstream deadletters --json").splitlines()
    errors = sorted(json.loads(letter)["error"] for letter in letters)
    assert len(errors) == 2
    assert "one whole JSON value" in errors[0]
    assert "say its unit" in errors[1]
    assert "4.json:2" in said(here, "millstream deadletters")
