"""`make test-wheel` in CI does not pass over a Python that is missing; the metadata claim no more
than the README."""

from __future__ import annotations

import shutil
import subprocess
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_in_ci_every_python_must_be_there(tmp_path: Path) -> None:
    """With CI set, a version that is absent ends the script before anything is built."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("bash", "dirname", "mktemp", "rm"):
        found = shutil.which(name)
        assert found is not None
        (tools / name).symlink_to(found)
    (tmp_path / "scripts").mkdir()
    shutil.copy(ROOT / "scripts" / "wheel-test", tmp_path / "scripts")
    done = subprocess.run(
        [str(tools / "bash"), str(tmp_path / "scripts" / "wheel-test")],
        env={"PATH": str(tools), "HOME": str(tmp_path), "CI": "true"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1
    assert "absent: 3.11 3.12 3.13; install them" in done.stderr
    assert "built" not in done.stdout


def test_the_systems_are_those_of_the_readme() -> None:
    """Linux is tested; the metadata name no other system."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    systems = [name for name in project["classifiers"] if name.startswith("Operating System")]
    assert systems == ["Operating System :: POSIX :: Linux"]
    assert "on Linux (macOS is untested)" in (ROOT / "README.md").read_text()
