"""The archive for executors: its contents, and when it is made again."""

from __future__ import annotations

import zipfile
from pathlib import Path

import msgspec
import pytest

from millstream.errors import DefinitionError
from millstream.packages.runtime_archive import (
    DESCRIPTION,
    Runtime,
    RuntimeFiles,
    check_runtime,
    here,
    kept_runtime,
    runtime_files,
    write_runtime,
)

APP = """
import click
import helpful
import millstream as ms

app = ms.App("shop")
"""


@pytest.fixture
def app(tmp_path: Path) -> Path:
    (tmp_path / "app.py").write_text(APP)
    (tmp_path / "helpful.py").write_text("from deep.er import x\n")
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "__init__.py").write_text("")
    (tmp_path / "deep" / "er.py").write_text("x = 1\n")
    (tmp_path / "unused.py").write_text("")
    return tmp_path / "app.py"


def small(folder: Path) -> RuntimeFiles:
    file = folder / "a.py"
    file.write_text("x = 1\n")
    return RuntimeFiles(Runtime("0.1", *here(), {}), {"a.py": file})


def test_what_is_in_it(app: Path) -> None:
    """The application's modules, Millstream, its libraries and those that the application imports;
    neither Spark nor modules that nobody imports, nor tests of libraries."""
    what = runtime_files(str(app), "0.1")
    assert {"app.py", "helpful.py", "deep/__init__.py", "deep/er.py"} <= what.files.keys()
    assert "unused.py" not in what.files
    tops = {name.split("/")[0] for name in what.files}
    assert {"millstream", "lmdb", "msgspec", "numpy", "pyarrow", "click"} <= tops
    assert not {"pyspark", "py4j", "pandas", "uvicorn"} & tops
    assert "millstream/spark/daemon.py" in what.files
    assert not [name for name in what.files if name.startswith("numpy/") and "/tests/" in name]
    assert {"lmdb", "msgspec", "click"} <= what.runtime.libraries.keys()


def test_it_is_made_once_until_a_file_changes(tmp_path: Path) -> None:
    """The next run takes the archive that is there; after a change it makes another, and the old
    one goes."""
    what = small(tmp_path)
    first = kept_runtime(tmp_path / "kept", what)
    made = first.stat().st_mtime_ns
    assert kept_runtime(tmp_path / "kept", what) == first
    assert first.stat().st_mtime_ns == made
    (tmp_path / "a.py").write_text("x = 22\n")
    second = kept_runtime(tmp_path / "kept", what)
    assert second != first
    assert [*(tmp_path / "kept").iterdir()] == [second]
    with zipfile.ZipFile(second) as archive:
        assert archive.read("a.py") == b"x = 22\n"


def test_an_archive_for_another_python_is_refused(tmp_path: Path) -> None:
    """Also one of another Millstream, and a file that is none."""
    what = small(tmp_path)
    good = tmp_path / "good.zip"
    write_runtime(good, what)
    check_runtime(good, "0.1")
    with pytest.raises(DefinitionError, match=r"made for Millstream 0.1.*this is Millstream 0.2"):
        check_runtime(good, "0.2")
    other = tmp_path / "other.zip"
    with zipfile.ZipFile(other, "w") as archive:
        odd = Runtime("0.1", "2.7", here()[1], {})
        archive.writestr(DESCRIPTION, msgspec.json.encode(odd))
    with pytest.raises(DefinitionError, match=r"Python 2.7.*pack it again"):
        check_runtime(other, "0.1")
    other.write_text("no zip")
    with pytest.raises(
        DefinitionError, match="must be an archive that `millstream pack --runtime`"
    ):
        check_runtime(other, "0.1")
