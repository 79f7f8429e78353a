"""A package as an application: apart from all others, and blamed at its own line."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from packages.samples import APP, WORDS, collected, modules_forgotten, packed, written

from millstream import App
from millstream.errors import DefinitionError, PackageError
from millstream.packages.keys import Allowed
from millstream.packages.manifest import digest
from millstream.packages.package import Package, open_package
from millstream.packages.package_loader import load_package, unload_package
from millstream.windows.placed import PlacedJob


@pytest.fixture(autouse=True)
def forgotten(tmp_path: Path) -> Iterator[None]:
    with modules_forgotten(tmp_path):
        yield


def opened(data: bytes) -> Package:
    return open_package(data, Allowed(hashes=frozenset({digest(data)})))


def pairs(app: App, line: str) -> list[tuple[str, Any]]:
    """Returns the pairs that the job's map makes of a line."""
    placed = app.parts["counts"]
    assert isinstance(placed, PlacedJob)
    return list(placed.job.map({"line": line}))


def test_a_newer_version_is_the_newer_code(tmp_path: Path) -> None:
    """Two packages with modules of the same names are loaded at once. Each runs its own, including
    imports within functions. Modules of the process with those names are unaffected."""
    late = "def words(record):\n    from lib import rule\n    return rule.made(record)\n"
    versions = [
        {
            "app.py": APP,
            "packed_words.py": late,
            "lib/__init__.py": "",
            "lib/rule.py": f"def made(record):\n    return [(record['line'], {number})]\n",
        }
        for number in (1, 2)
    ]
    before = {*sys.modules}
    first, second = (load_package(opened(packed(files)), tmp_path) for files in versions)
    assert pairs(second, "a") == [("a", 2)]
    assert pairs(first, "a") == [("a", 1)]
    fresh = {name.split(".")[0] for name in {*sys.modules} - before}
    assert fresh.isdisjoint({"app", "packed_words", "lib"})
    assert not any(str(tmp_path) in entry for entry in sys.path)


def test_a_package_can_be_loaded_again(tmp_path: Path) -> None:
    """The second load uses the loaded modules. After unloading they are new ones, and functions
    that were kept still work."""
    package = opened(packed({"app.py": APP, "packed_words.py": WORDS}))
    app = load_package(package, tmp_path)
    assert load_package(package, tmp_path) is app
    unload_package(package.sha256)
    assert not [name for name in sys.modules if package.sha256 in name]
    again = load_package(package, tmp_path)
    assert again is not app
    assert pairs(app, "a b") == pairs(again, "a b") == [("a", 1), ("b", 1)]


def test_every_way_to_import_finds_the_packages_own(tmp_path: Path) -> None:
    """Plain, dotted, renamed, relative, of a folder without __init__; a file that is called like a
    module of Python's hides nothing."""
    words = """
import json
import lib.deep.one
import lib.deep.two as two
from lib import deep
from lib.deep import one as first, two as second
from lib.deep.three import *
from space import thing
import dataclasses

@dataclasses.dataclass
class Pair:
    word: "str"

def words(record):
    assert json.dumps([]) == "[]"
    assert lib.deep.one is first and two is second and deep.one is first
    yield Pair(record["line"]).word, (first.NUMBER, second.NUMBER, THREE, thing.NUMBER)
"""
    files = {
        "app.py": APP,
        "packed_words.py": words,
        "json.py": "raise RuntimeError('not this one')\n",
        "lib/__init__.py": "",
        "lib/deep/__init__.py": "from . import one\nfrom .. import deep as me\n",
        "lib/deep/one.py": "NUMBER = 1\n",
        "lib/deep/two.py": "from .one import NUMBER as ONE\nNUMBER = ONE + 1\n",
        "lib/deep/three.py": "THREE = 3\n",
        "space/thing.py": "NUMBER = 4\n",
    }
    app = load_package(opened(packed(files)), tmp_path)
    assert pairs(app, "a") == [("a", (1, 2, 3, 4))]
    # What `millstream pack` finds is enough, without the file that nobody imports.
    del files["json.py"]
    data = collected(written(tmp_path / "source", files))
    assert {*opened(data).files} == {*files}
    assert pairs(load_package(opened(data), tmp_path / "other"), "a") == [("a", (1, 2, 3, 4))]


TOML = """
[app]
name = "logs"

[jobs.counts]
map = "toml_words:words"
combine = "sum"
range = "1m"
nodes = ["web1"]

[jobs.counts.logs]
ts = "time"
"""


def test_an_application_in_toml_is_packed_with_its_functions(tmp_path: Path) -> None:
    """The modules that it names come with it; two versions are apart there too."""
    found = []
    for number in (1, 2):
        folder = tmp_path / str(number)
        text = f"def words(record):\n    return [(record['line'], {number})]\n"
        data = packed({"app.toml": TOML, "toml_words.py": text}, file="app.toml")
        found.append(load_package(opened(data), folder))
    assert [pairs(app, "a") for app in found] == [[("a", 1)], [("a", 2)]]
    assert "toml_words" not in sys.modules
    folder = written(tmp_path / "source", {"app.toml": TOML, "toml_words.py": WORDS, "x.py": ""})
    assert [*opened(collected(folder, "app.toml")).files] == ["app.toml", "toml_words.py"]


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"packed_words.py": "1 / 0\n"}, r"packed_words\.py:1: ZeroDivisionError"),
        ({"packed_words.py": "def words(:\n"}, r"packed_words\.py:1: SyntaxError"),
        (
            {"packed_words.py": "import nowhere_at_all\n"},
            r"packed_words\.py:1: ModuleNotFoundError",
        ),
        ({"packed_words.py": "raise SystemExit(3)\n"}, r"packed_words\.py:1: the module exits"),
        (
            {"app.py": APP.replace("from packed_words", "from words_not_packed")},
            r"app\.py:3: ModuleNotFoundError: No module named 'words_not_packed'",
        ),
        ({"packed_words.py": WORDS, "app.py": "x = 1\n"}, r"app\.py has no App"),
    ],
)
def test_code_that_fails_is_blamed_at_its_line(
    tmp_path: Path, files: dict[str, str], said: str
) -> None:
    """Any error in the code becomes a DefinitionError, and no module stays loaded."""
    package = opened(packed({"app.py": APP, **files}))
    for _ in range(2):
        with pytest.raises(DefinitionError, match=said):
            load_package(package, tmp_path)
        assert not [name for name in sys.modules if package.sha256 in name]


def test_a_package_must_hold_the_application_it_says(tmp_path: Path) -> None:
    """A package with another application, or without the jobs, is refused."""
    files = {"app.py": APP, "packed_words.py": WORDS}
    for data in (
        packed(files, app="other"),
        packed({**files, "app.py": APP.replace('"counts"', '"words"')}),
    ):
        with pytest.raises(PackageError, match="must hold app"):
            load_package(opened(data), tmp_path)


def test_what_lies_in_the_folder_is_not_trusted(tmp_path: Path) -> None:
    """Files that were changed after they were unpacked, or put there before, are not run: the code
    is that of the package, and its folder is made anew."""
    package = opened(packed({"app.py": APP, "packed_words.py": WORDS}))
    home = tmp_path / package.sha256
    written(home, {"packed_words.py": "raise RuntimeError('planted')\n", "more.py": ""})
    app = load_package(package, tmp_path)
    assert pairs(app, "a") == [("a", 1)]
    assert {path.name for path in home.iterdir()} == {"app.py", "packed_words.py"}
    unload_package(package.sha256)
    (home / "packed_words.py").write_text("raise RuntimeError('changed')\n")
    assert pairs(load_package(package, tmp_path), "a") == [("a", 1)]
    assert (home / "packed_words.py").read_text() == WORDS
    assert not (home / "__pycache__").exists()
