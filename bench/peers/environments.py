"""Environments for peers: one each, made the first time, under MILLSTREAM_PEERS or in the cache."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

from bench.apart import RunFailedError

FOLDER = Path(__file__).resolve().parent


def interpreter(peer: str) -> Path:
    """The Python of a peer's environment, which has what PEER.txt names.

    RunFailedError if it cannot be made.
    """
    wanted = (FOLDER / f"{peer}.txt").read_bytes()
    tag = hashlib.sha256(wanted + sys.version.encode()).hexdigest()[:12]
    place = _cache() / f"{peer}-{tag}"
    python = place / "bin" / "python"
    if not (place / "made").exists():
        shutil.rmtree(place, ignore_errors=True)
        _made([sys.executable, "-m", "venv", str(place)], peer)
        install = ["-m", "pip", "install", "-q", "--disable-pip-version-check"]
        _made([str(python), *install, "-r", str(FOLDER / f"{peer}.txt")], peer)
        (place / "made").touch()
    return python


def _made(command: list[str], peer: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        said = " ".join((done.stderr or done.stdout).split())
        raise RunFailedError(f"the environment of {peer} cannot be made: {said[-300:]}")


def _cache() -> Path:
    given = os.environ.get("MILLSTREAM_PEERS")
    return Path(given) if given else Path.home() / ".cache" / "millstream-peers"
