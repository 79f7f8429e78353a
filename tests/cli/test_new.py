"""`millstream new`, `check` and `graph` over what it writes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src"


def test_its_own_test_passes(retail):
    """The application that `new` writes passes the test that `new` writes."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=retail,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout


def test_the_application_is_about_ten_lines(retail):
    """Ten lines to a running application, give or take two."""
    lines = [line for line in (retail / "app.py").read_text().splitlines() if line.strip()]
    assert len(lines) <= 12


def test_the_data_is_json_lines(retail):
    """Every line of the sample data is a record with the fields that the source names."""
    files = sorted((retail / "data" / "checkins").glob("*.json"))
    assert len(files) == 3
    for file in files:
        for line in file.read_text().splitlines():
            assert set(json.loads(line)) == {"user", "time", "venue"}


def test_the_readme_has_the_commands(retail):
    """The README has the three commands."""
    readme = (retail / "README.md").read_text()
    for command in ("millstream run app.py --source", "millstream slates get count", "pytest"):
        assert f"    {command}" in readme


def test_new_overwrites_nothing(millstream, retail):
    """A directory with something in it is left alone."""
    before = (retail / "app.py").read_text()
    result = millstream("new", "retail")
    assert (result.exit_code, (retail / "app.py").read_text()) == (2, before)
    assert "not empty" in result.stderr


def test_new_refuses_a_bad_name(millstream, here):
    """The directory's name is the app's, and must be one."""
    assert millstream("new", "9 lives").exit_code == 2
    assert not (here / "9 lives").exists()


def test_check(millstream, retail, monkeypatch):
    """`check` says what it found, and exits 0."""
    result = millstream("check", "retail/app.py")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == "retail: fine: 1 source, 1 map, 1 update, 0 outputs\n"


def test_check_warns(millstream, retail):
    """A stream that nobody reads is a warning on stderr, not a failure."""
    app = retail / "app.py"
    app.write_text(
        app.read_text().replace('@app.update("retailer_checkins"', '@app.update("checkins"')
    )
    result = millstream("check", "retail/app.py")
    assert result.exit_code == 0
    assert result.stderr.startswith("warning: stream 'retailer_checkins', published by map")


@pytest.mark.parametrize(
    ("slate", "message"),
    [
        ("x: int", "every field needs a default"),
        ("x: list | set = None", "types that JSON can carry"),
    ],
)
def test_check_looks_at_slates(millstream, retail, slate, message):
    """A slate that could not be made or stored is found without running."""
    app = retail / "app.py"
    text = app.read_text().replace("import millstream as ms\n", (
        "from dataclasses import dataclass\nimport millstream as ms\n"
        f"@dataclass\nclass Count:\n    {slate}\n"
    )).replace('ttl="90d"', "slate=Count")  # fmt: skip
    app.write_text(text)
    result = millstream("check", "retail/app.py")
    assert result.exit_code == 2
    assert message in result.stderr


def test_graph_prints_or_writes(millstream, retail, here):
    """`graph` prints text, and writes what the file's name asks for."""
    assert "└─ [recognise]" in millstream("graph", "retail/app.py").stdout
    assert millstream("graph", "retail/app.py", "--format", "mermaid").stdout.startswith(
        "flowchart"
    )
    assert millstream("graph", "retail/app.py", "--to", "a.svg").exit_code == 0
    assert (here / "a.svg").read_text().startswith("<svg ")
    assert millstream("graph", "retail/app.py", "--to", "nowhere/a.svg").exit_code == 2
