"""Executors that have nothing but Spark and a bare Python, behind a secret and encryption."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cluster.cluster_app import put, records, settings, two_layers

from fault_runs.cluster import Cluster, cluster, command_of
from millstream.errors import RunError
from millstream.places.directory_place import DirectoryPlace
from millstream.spark.executors import PATIENCE
from millstream.spark.runner import run
from millstream.stores.reader import SlateReader
from millstream.stores.shared.store_mirror import StoreMirror

pytestmark = pytest.mark.cluster
SECRET = "a secret of the tests"
SECURED = {
    "spark.authenticate": "true",
    "spark.authenticate.secret": SECRET,
    "spark.network.crypto.enabled": "true",
    "spark.network.crypto.saslFallback": "false",
    "spark.network.crypto.authEngineVersion": "2",
    "spark.network.crypto.cipher": "AES/GCM/NoPadding",
}
APP = """
import millstream as ms

app = ms.App("shipped")
app.source("words", key="word", ts="ts", unit="us")

@app.update("words")
def count(event, slate):
    import stemming  # beside this file, not known to the driver when it pickles the function
    import lmdb, msgspec, pyarrow, sys
    slate["stem"] = stemming.stem(event.key)
    slate["count"] = slate.get("count", 0) + 1
    slate["files"] = [m.__file__ for m in (ms, lmdb, msgspec, pyarrow, stemming)]
    slate["path"] = sys.path
"""


@pytest.fixture(scope="module")
def secured() -> Iterator[Cluster]:
    """A worker whose executors know the secret, and no Python library of ours."""
    with cluster(workers=1, hosts=True, environ={"PYTHONPATH": ""}, defaults=SECURED) as made:
        yield made


def application(folder: Path) -> tuple[Path, Path]:
    """The application's file, and a Python without any library."""
    venv.create(folder / "bare", with_pip=False)
    (folder / "app.py").write_text(APP)
    (folder / "stemming.py").write_text("def stem(word):\n    return word.rstrip('s')\n")
    words = ("xs", "ys", "xs")
    put(folder / "in", "a.json", [{"word": word, "ts": n} for n, word in enumerate(words)])
    return folder / "app.py", folder / "bare" / "bin" / "python"


def millstream_run(folder: Path, master: str, *flags: str) -> tuple[int, str]:
    """`millstream run`, as a user starts it: how it ended and what it said. No process on the
    machine may show the secret meanwhile."""
    command = [sys.executable, "-m", "millstream.cli.main", "run", str(folder / "app.py")]
    command += ["--master", master, "--store", f"shared:{folder / 'place'}", "--memory", "512m"]
    command += ["--source", f"words=json:{folder / 'in'}", "--available-now", *flags]
    environment = os.environ | {"MILLSTREAM_CACHE": str(folder / "driver")}
    told = folder / "told"
    with told.open("w") as file:
        process = subprocess.Popen(command, env=environment, stdout=file, stderr=file)
        while process.poll() is None:
            assert not any(SECRET.encode() in command_of(one) for one in processes())
            time.sleep(0.2)
    return process.returncode, told.read_text()


def processes() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def slates(folder: Path) -> dict[str, Any]:
    StoreMirror(DirectoryPlace(folder / "place"), folder / "mirror", patience=0.0).close()
    with SlateReader(folder / "mirror") as reader:
        return {slate.key: slate.value for slate in reader.scan("count")}


def test_the_code_reaches_executors_that_have_none_of_it(secured: Cluster, tmp_path: Path) -> None:
    """A run that listens ships its application, Millstream and the libraries; nothing is read from
    the driver's installation. The secret is never on a command line."""
    _, python = application(tmp_path)
    secret = tmp_path / "secret"
    secret.write_text(SECRET)
    secret.chmod(0o600)
    flags = ("--listen", "127.0.0.1", "--secret-file", str(secret), "--python", str(python))
    code, told = millstream_run(tmp_path, secured.url, *flags)
    assert code == 0, told + secured.said_by(0)
    found = slates(tmp_path)
    assert {key: (value["stem"], value["count"]) for key, value in found.items()} == {
        "xs": ("x", 2),
        "ys": ("y", 1),
    }
    (value, *_) = found.values()
    assert all("/millstream-runtime/" in file for file in value["files"]), value["files"]
    ours = [path for path in value["path"] if "site-packages" in path]
    assert all("/site-packages/pyspark/" in path or "/bare/" in path for path in ours), ours


def test_a_wrong_secret_is_refused(
    secured: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A driver that does not know the secret gets no executor, and says what to look at."""
    monkeypatch.setenv("MILLSTREAM_SPARK_SECRET", "another")
    monkeypatch.setitem(PATIENCE, "standalone", 10.0)
    put(tmp_path / "in", "a.json", records(5))
    given = settings(tmp_path, secured.url, listen="127.0.0.1", runtime="installed")
    with pytest.raises(RunError, match=r"(no executor of|Spark did not start) .*spark://.*secret"):
        run(two_layers(), given)
