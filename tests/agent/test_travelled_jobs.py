"""Jobs that reached a node: as data over lines of text, and as a package that was allowed."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import msgspec
import pytest
from agent_runs import once
from packages.samples import APP, WORDS, key_in, packed
from taking_root import Root

from millstream.app_file.app_file import read_app
from millstream.errors import DefinitionError, PackageError
from millstream.packages.keys import Allowed
from millstream.packages.manifest import digest
from millstream.packages.node_jobs import job_on_node
from millstream.windows.definition import PublishedJob, read_published
from millstream.windows.placed import PlacedJob, job_parts

BEGAN = 1_700_000_000
TOML = r"""
[app]
name = "logs"

[jobs.counts]
key = ["host", "status"]
value = "bytes"
where = { status = { at_least = 400 } }
numbers = ["status"]
combine = "sum"
range = "4s"
pane = "1s"
nodes = ["web1", "web2"]

[jobs.counts.logs]
pattern = '(?P<ts>\d+) (?P<host>\w+) (?P<status>\d+) (?P<bytes>\S+)'
ts = "ts"
unit = "s"
"""


def test_a_job_of_text_alone_travels_and_sums(tmp_path: Path, root: Root) -> None:
    """TOML without Python, through the description's JSON, at an agent over a log of text: every
    sum is that of a plain count, and lines without a number are dead letters."""
    (tmp_path / "app.toml").write_text(TOML)
    app, _ = read_app(tmp_path / "app.toml")
    parts = msgspec.json.decode(msgspec.json.encode(app.checked().parts))
    answer = msgspec.json.encode(job_parts(parts)["counts"].definition)
    placed = job_on_node(
        read_published(answer), "counts", allowed=Allowed(), fetch=nothing, folder=tmp_path
    )
    assert placed == app.parts["counts"]
    lines, truth = [], Counter[str]()
    for number in range(40):
        host, status = f"h{number % 3}", (200, 404, 503)[number % 2 + number % 5 // 4]
        size = "-" if number == 17 else str(number)
        lines.append(f"{BEGAN + number // 10} {host} {status} {size}")
        if status >= 400 and size != "-":
            truth[f"{host}/{status}"] += number
    (tmp_path / "app.log").write_text("\n".join(lines) + "\n")
    once(tmp_path, root, placed)
    assert sums(root) == truth
    dead = (tmp_path / "state" / "dead-letters.jsonl").read_text().splitlines()
    assert ["'bytes' must be a number" in one for one in dead] == [True]


def sums(root: Root) -> Counter[str]:
    """Returns the sums that were sent to the root, over all panes."""
    found = Counter[str]()
    for (_, key), value in root.board.values.items():
        found[key] += value
    return found


def nothing(sha: str) -> bytes:
    raise AssertionError("a job that is data has no package")


def test_a_python_job_comes_as_a_package(tmp_path: Path) -> None:
    """The job is that of the package. A package that is not allowed, or not the requested one, is
    not run: the application would leave a mark."""
    mark = tmp_path / "mark"
    files = {"app.py": f"open({str(mark)!r}, 'a').write('ran ')\n" + APP, "packed_words.py": WORDS}
    key, allowed = key_in(tmp_path)
    data = packed(files, key)
    published = PublishedJob(version=digest(data), package=digest(data))

    def on_node(served: bytes, allowed: Allowed, name: str = "counts") -> PlacedJob:
        return job_on_node(
            published, name, allowed=allowed, fetch=lambda sha: served, folder=tmp_path / "packages"
        )

    for served, refused in ((data, Allowed()), (packed(files), allowed), (data[:-1], allowed)):
        with pytest.raises(PackageError):
            on_node(served, refused)
    assert not mark.exists()
    placed = on_node(data, allowed)
    assert mark.read_text() == "ran "
    assert list(placed.job.map({"line": "a b"})) == [("a", 1), ("b", 1)]
    with pytest.raises(PackageError, match="job 'other': its package must have a job"):
        on_node(data, allowed, "other")
    none = PublishedJob(version="x")
    with pytest.raises(PackageError, match="got neither"):
        job_on_node(none, "counts", allowed=allowed, fetch=nothing, folder=tmp_path)
    broken = packed({**files, "packed_words.py": "import nowhere_at_all\n"}, key)
    published = PublishedJob(version=digest(broken), package=digest(broken))
    with pytest.raises(DefinitionError, match="nowhere_at_all"):
        on_node(broken, allowed)


def test_the_command_runs_an_allowed_package(tmp_path: Path, root: Root) -> None:
    """`millstream agent logs.package.zip` needs nothing of the application beside it; without
    --allow it ends before anything of the package runs."""
    key, _ = key_in(tmp_path)
    mark = tmp_path / "mark"
    files = {"app.py": f"open({str(mark)!r}, 'a').write('ran ')\n" + APP, "packed_words.py": WORDS}
    (tmp_path / "logs.package.zip").write_bytes(packed(files, key))
    with (tmp_path / "app.log").open("w") as log:
        for number in range(20):
            time = f"2026-11-14T22:13:{number:02}Z"
            log.write(json.dumps({"time": time, "line": f"w{number % 2} all"}) + "\n")

    def agent(*more: str) -> subprocess.CompletedProcess[str]:
        given = ["agent", "logs.package.zip", "--node", "web1", "--log", "app.log*", "--once"]
        return subprocess.run(
            [sys.executable, "-m", "millstream.cli.main", *given, "--root", root.url, *more],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
        )

    refused = agent()
    assert refused.returncode == 1
    assert "must be signed by a key that is allowed here (nothing)" in refused.stderr
    assert not mark.exists()
    done = agent("--allow", "release.key.pub")
    assert done.returncode == 0, done.stderr
    assert sums(root) == {"w0": 10, "w1": 10, "all": 20}
