"""The machine, the versions and the commit for which the figures were measured."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


def machine() -> dict[str, Any]:
    """The machine, and the versions of its software."""
    return {
        "cpu": _cpu(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30, 1),
        "system": platform.platform(),
        "python": platform.python_version(),
        "java": _java(),
        "spark": version("pyspark"),
        "millstream": version("millstream"),
    }


def commit() -> dict[str, Any]:
    """The commit that was measured, and whether files other than results differ from it."""
    head = _said("git", "rev-parse", "HEAD")
    status = ("status", "--porcelain", "--", ".", ":!bench/results")
    changed = _said("git", "--no-optional-locks", *status)
    return {"commit": head or "unknown", "dirty": bool(changed)}


def _cpu() -> str:
    try:
        found = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.M)
    except OSError:
        found = None
    return found[1] if found else platform.processor() or platform.machine()


def _java() -> str:
    home = os.environ.get("JAVA_HOME")
    said = _said(f"{home}/bin/java" if home else "java", "-version")
    found = re.search(r'version "([^"]+)"', said)
    return found[1] if found else "unknown"


def _said(*command: str) -> str:
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return (done.stdout + done.stderr).strip() if done.returncode == 0 else ""
