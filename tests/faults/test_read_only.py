"""A store on a file system that was mounted read-only: runs are refused, reads go on."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import millstream as ms
from millstream.driver.in_process import run
from millstream.settings.settings import Settings

APP = """
import millstream as ms
app = ms.App("counting")
app.source("words", key="word")

@app.update("words")
def count(event, slate):
    slate["n"] = slate.get("n", 0) + 1
"""


def filled(folder: Path) -> None:
    """A store with one slate, and the application beside it."""
    (folder / "in").mkdir()
    (folder / "in" / "a.json").write_text('{"word": "x"}\n')
    (folder / "app.py").write_text(APP)
    names: dict[str, ms.App] = {}
    exec(APP, names)  # the application that the commands load from the file
    sources = {"words": f"json:{folder / 'in'}"}
    run(names["app"], Settings.of("counting", folder / "store", sources, available_now=True))


def read_only(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a mount namespace where the store is read-only."""
    mount = "mount --bind store store && mount -o remount,ro,bind store && exec "
    millstream = f"{sys.executable} -m millstream.cli.main"
    user = [] if os.geteuid() == 0 else ["-r"]
    script = mount + f"{millstream} {' '.join(command)} --store store"
    return subprocess.run(
        ["unshare", *user, "-m", "sh", "-c", script], cwd=folder, capture_output=True, text=True
    )


@pytest.mark.faults
def test_a_read_only_store_is_read_and_not_run(tmp_path: Path) -> None:
    """A run ends with one error line and code 1; slates are read, and verify finds nothing."""
    filled(tmp_path)
    ran = read_only(tmp_path, "run", "app.py", "--source", "words=json:in", "--available-now")
    assert ran.returncode == 1
    errors = [line for line in ran.stderr.splitlines() if not line.startswith("millstream: ")]
    assert len(errors) == 1
    assert errors[0].startswith("error: store/lock: cannot be opened: Read-only file system")
    got = read_only(tmp_path, "slates", "get", "count", "x")
    assert (got.returncode, got.stdout.strip()) == (0, '{"n":1}')
    verified = read_only(tmp_path, "verify")
    assert verified.returncode == 0, verified.stdout + verified.stderr
