"""The smoke test of an installed wheel. scripts/wheel-test runs it in a clean environment.

Without an argument: without extras. With `spark`: a run on Spark.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from importlib import metadata, util
from pathlib import Path


def command(*words: str, folder: Path, code: int = 0) -> str:
    """Returns the output of a command. Its exit code must be `code`."""
    done = subprocess.run(
        ["millstream", *words], cwd=folder, capture_output=True, text=True, timeout=120
    )
    printed = done.stdout + done.stderr
    assert done.returncode == code, f"millstream {' '.join(words)}: {done.returncode}: {printed}"
    return printed


def try_without_extras(folder: Path) -> None:
    """Clients, agents and tests need no Spark; what does says which extra brings it."""
    assert util.find_spec("pyspark") is None
    import millstream as ms

    for name in ms.__all__:
        assert getattr(ms, name) is not None, name
    command("new", "shop", folder=folder)
    shop = folder / "shop"
    assert "fine" in command("check", "app.py", folder=shop)
    command("graph", "app.py", folder=shop)
    test = "import test_app; [f() for n, f in vars(test_app).items() if n.startswith('test_')]"
    if (shop / "test_app.py").exists():
        subprocess.run([sys.executable, "-c", test], cwd=shop, check=True, timeout=60)
    for words in (["agent", "--help"], ["serve", "--help"], ["slates", "--help"]):
        command(*words, folder=folder)
    given = ("--source", "checkins=json:data/checkins", "--available-now")
    refused = command("run", "app.py", *given, folder=shop, code=2)
    assert "pip install 'millstream[spark]'" in refused, refused


def try_spark(folder: Path) -> None:
    """The application that `millstream new` writes runs, and its slate can be read."""
    command("new", "shop", folder=folder)
    shop = folder / "shop"
    where = ("--source", "checkins=json:data/checkins", "--store", "store", "--available-now")
    command("run", "app.py", *where, folder=shop)
    assert "count" in command("slates", "get", "count", "Walmart", "--store", "store", folder=shop)


if __name__ == "__main__":
    needs = try_spark if "spark" in sys.argv[1:] else try_without_extras
    with tempfile.TemporaryDirectory() as made:
        needs(Path(made))
    version = ".".join(map(str, sys.version_info[:3]))
    print(
        f"wheel: millstream {metadata.version('millstream')} on Python {version}: {needs.__name__}"
    )
