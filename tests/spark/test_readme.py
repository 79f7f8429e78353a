"""The first five minutes, as a user has them: through the command line, in processes of their own.

The README's blocks are taken from it as they stand; the comment before a block names its file.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

pytestmark = pytest.mark.spark
README = Path(__file__).parent.parent.parent / "README.md"
BLOCK = re.compile(r"<!-- example: (\S+) -->\n```\w*\n(.*?)```", re.DOTALL)
COMMANDS, OUTPUT = "commands", "output"


def shell(here: Path, commands: str) -> subprocess.CompletedProcess[str]:
    """Run commands as a user does whose environment has Millstream in it."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("MILLSTREAM_", "PYTHONPATH"))}
    env["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), env["PATH"]])
    return subprocess.run(
        ["sh", "-e", "-c", commands], cwd=here, env=env, capture_output=True, text=True, timeout=240
    )


def said(here: Path, commands: str) -> str:
    """What commands print, all of which must succeed without a word of Spark's or a traceback."""
    done = shell(here, commands)
    assert done.returncode == 0, done.stderr
    assert not re.search(r"Traceback|WARN|ERROR", done.stderr), done.stderr
    return done.stdout


def test_the_readme_runs_as_pasted(tmp_path: Path) -> None:
    """The README's files, commands and test give what it says."""
    blocks = dict(BLOCK.findall(README.read_text()))
    assert {"retail.py", COMMANDS, OUTPUT, "test_retail.py"} <= set(blocks)
    for name, text in blocks.items():
        if name not in (COMMANDS, OUTPUT):
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
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
    assert first == "millstream: app shop, store .millstream/shop, starting Spark ..."
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
