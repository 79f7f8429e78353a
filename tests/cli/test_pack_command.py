"""`millstream pack`, and a run that is given a package: through the command line."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from packages.samples import APP, WORDS, modules_forgotten, written

from millstream.config import load
from millstream.description import read_description
from millstream.packages.keys import allowed_of
from millstream.packages.package import open_package
from millstream.service.app_description import describe_app
from millstream.settings.settings import resolve
from millstream.stores.home import Home
from millstream.stores.package_files import package_path, put_package
from millstream.windows.definition import read_published
from millstream.windows.placed import job_parts

DATA = """
import millstream as ms

app = ms.App("logs")
app.add(
    ms.windows.Job(map=ms.windows.FieldMap(key="level"), range="1m"),
    name="levels",
    nodes=["web1"],
    logs=ms.windows.Logs(ts="time"),
)
"""


def millstream(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "millstream.cli.main", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_a_package_from_the_command_line(tmp_path: Path) -> None:
    """A key is made, the application is packed and signed, a node that allows the key opens it; the
    same again gives the same bytes."""
    written(tmp_path, {"app.py": APP, "packed_words.py": WORDS, "unused.py": "1 / 0\n"})
    assert millstream(tmp_path, "pack", "--new-key", "k").returncode == 0
    first = millstream(tmp_path, "pack", "app.py", "--sign", "k")
    assert first.returncode == 0, first.stderr
    data = (tmp_path / "logs.package.zip").read_bytes()
    package = open_package(data, allowed_of([str(tmp_path / "k.pub")]))
    assert [*package.files] == ["app.py", "packed_words.py"]
    assert f"sha256:{package.sha256}" in first.stderr
    second = millstream(tmp_path, "pack", "app.py", "--sign", "k", "-o", "again.zip")
    assert second.returncode == 0
    assert (tmp_path / "again.zip").read_bytes() == data


@pytest.mark.parametrize(
    ("files", "words", "code", "said"),
    [
        ({"app.py": DATA}, ("app.py",), 2, "jobs are data.* no package is needed"),
        ({"app.py": APP}, ("app.py",), 2, "app.py:3: ModuleNotFoundError"),
        (
            {"app.py": APP, "packed_words.py": WORDS},
            ("app.py", "--sign", "k"),
            2,
            "k: must be a private",
        ),
        ({}, (), 2, "needs APP"),
        ({}, ("app.py", "--new-key", "k"), 2, "must stand alone"),
        (
            {
                "app.py": APP,
                "packed_words.py": "import importlib\nhidden = importlib.import_module('hidden')\n"
                + WORDS,
                "hidden.py": "",
            },
            ("app.py",),
            2,
            "alone, as on a node; packed_words.py:2: .*No module named 'hidden'; write it as",
        ),
        (
            {"app.py": APP, "packed_words.py": WORDS},
            ("app.py", "--include", "/etc/hostname"),
            2,
            "--include must name files below",
        ),
    ],
)
def test_what_cannot_be_packed_is_told_at_once(
    tmp_path: Path, files: dict[str, str], words: tuple[str, ...], code: int, said: str
) -> None:
    """This includes modules that an agent would not find: the job is loaded from the package alone
    before it is written."""
    written(tmp_path, files)
    done = millstream(tmp_path, "pack", *words)
    assert done.returncode == code
    assert re.search(said, done.stderr), done.stderr
    assert not list(tmp_path.glob("*.zip"))


def test_files_that_are_not_imported_are_included(tmp_path: Path) -> None:
    """A folder of data beside the application, found by its module's own place."""
    words = (
        "from pathlib import Path\n"
        "STOP = (Path(__file__).parent / 'data' / 'stop.txt').read_text().split()\n" + WORDS
    )
    written(tmp_path, {"app.py": APP, "packed_words.py": words, "data/stop.txt": "the a"})
    done = millstream(tmp_path, "pack", "app.py", "--include", "data", "-o", "p.zip")
    assert done.returncode == 0, done.stderr
    assert millstream(tmp_path, "pack", "app.py", "-o", "q.zip").returncode == 2


def test_a_run_leaves_its_package_in_the_store(tmp_path: Path) -> None:
    """The description names it for the Python jobs, and only for them; the server finds its
    bytes by the hash."""
    both = APP + DATA[DATA.index("app.add") :]
    written(tmp_path, {"pack_both.py": both, "packed_words.py": WORDS})
    done = millstream(tmp_path, "pack", "pack_both.py", "-o", "p.zip")
    assert done.returncode == 0, done.stderr
    with modules_forgotten(tmp_path):
        target = load(str(tmp_path / "pack_both.py"))
        store = tmp_path / "store"
        flags = {"store": store, "package": tmp_path / "p.zip"}
        settings = resolve(target.app, flags=flags)
        Home.make(store, "logs", None, target.app.checked().slate_kinds)
        describe_app(target.app, settings)
    description = read_description(store)
    assert description is not None
    jobs = job_parts(description.parts)
    counts, levels = (
        read_published(msgspec.json.encode(jobs[name].definition)) for name in ("counts", "levels")
    )
    assert counts.package is not None
    assert counts.version == counts.package
    assert levels.definition is not None
    path = package_path(store, counts.package)
    assert path is not None
    assert path.read_bytes() == (tmp_path / "p.zip").read_bytes()
    for name in ("../../app.json", "", "x" * 64, counts.package.upper(), "0" * 64):
        assert package_path(store, name) is None
    assert put_package(store, path.read_bytes()) == counts.package


def test_a_run_refuses_a_package_of_other_code(tmp_path: Path) -> None:
    """The root and its agents run the same files: what was changed since is named."""
    written(tmp_path, {"app.py": APP, "packed_words.py": WORDS})
    assert millstream(tmp_path, "pack", "app.py", "-o", "p.zip").returncode == 0
    (tmp_path / "packed_words.py").write_text(WORDS + "# changed\n")
    done = millstream(tmp_path, "run", "app.py", "--package", "p.zip")
    assert done.returncode == 1
    assert "got another packed_words.py; pack it again" in done.stderr
    (tmp_path / "packed_words.py").write_text(WORDS)
    (tmp_path / "p.zip").write_bytes(b"PK")
    assert "must be a zip" in millstream(tmp_path, "run", "app.py", "--package", "p.zip").stderr
    assert "cannot be read" in millstream(tmp_path, "run", "app.py", "--package", "x.zip").stderr
