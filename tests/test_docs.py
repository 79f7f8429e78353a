"""The documentation: links lead somewhere, and the examples are what they say."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import millstream as ms
from docs import build
from docs.figures import filled
from millstream.modules import import_file

ROOT = Path(__file__).resolve().parent.parent
MODULE = re.compile(r"`([\w/]+\.py)`")
_EXAMPLE = re.compile(r"<!-- example: (?P<name>\S+) -->\n```\w*\n(?P<text>.*?)^```$", re.S | re.M)


def examples(page: str) -> dict[str, str]:
    """The marked blocks of a page, by the name in the comment before each."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return {found["name"]: found["text"] for found in _EXAMPLE.finditer(text)}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty working directory. Modules imported from it are forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    before = set(sys.modules)
    # Another test may have imported a module of the same name, as of examples/retail.py.
    hidden = {name: sys.modules.pop(name) for name in ("retail",) if name in sys.modules}
    yield tmp_path
    for name in set(sys.modules) - before | set(hidden):
        file = getattr(sys.modules.get(name), "__file__", None)
        if file and Path(file).is_relative_to(tmp_path):
            del sys.modules[name]
    sys.modules.update(hidden)


def paste(folder: Path, blocks: dict[str, str], *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(blocks[name])


def run_tests(module: ModuleType) -> int:
    """Call the test functions of a module; how many there were."""
    tests = [value for name, value in vars(module).items() if name.startswith("test_")]
    for test in tests:
        test()
    return len(tests)


def test_figures_are_those_of_the_results() -> None:
    """Every figure between marks in a page is what the benchmarks' results say: none is by hand."""
    for page in build.pages():
        text = page.read_text(encoding="utf-8")
        assert filled(text) == text, f"{page.name}: run make docs"


def test_every_link_leads_somewhere() -> None:
    """Relative links, their anchors, and paths under src/ in backticks exist."""
    assert build.problems() == []


def test_the_pages_about_papers_name_whole_paths() -> None:
    """A module in backticks is a path from the root of the repository, and exists."""
    pages = sorted((ROOT / "docs" / "papers").glob("*.md"))
    modules = [(page, name) for page in pages for name in MODULE.findall(page.read_text())]
    assert len(modules) > 50
    assert [(page.name, name) for page, name in modules if not (ROOT / name).is_file()] == []


def test_the_tour_covers_the_source() -> None:
    """CONTRIBUTING names every folder and module at the top of the package."""
    tour = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    parts = [part for part in (ROOT / "src" / "millstream").iterdir() if part.name[0] not in "_."]
    paths = [f"src/millstream/{part.name}{'/' * part.is_dir()}" for part in parts]
    missing = [path for path in paths if path not in tour and path != "src/millstream/py.typed"]
    assert not missing, f"name these in 'The folders' of CONTRIBUTING.md: {missing}"


def test_the_picture_is_of_the_example(here: Path) -> None:
    """docs/pictures/retail.svg is what `make docs` draws from examples/retail.py."""
    assert build.PICTURE.read_text(encoding="utf-8") == build.draw(), "run: make docs"


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    """A missing file, a missing heading and a missing source path are each named by line."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "README.md").write_text(
        "# Here\n"
        "[fine](#here) and [there](docs/a.md#two-words) and [out](https://example.com/x)\n"
        "[gone](docs/b.md), [no heading](docs/a.md#three), `src/gone.py`\n"
        "```\n[not a link](nowhere.md)\n```\n"
        "`[nor this](nowhere.md)`\n"
    )
    (tmp_path / "docs" / "a.md").write_text("## Two *words*\n")
    assert build.problems(tmp_path) == [
        "README.md:3: link to 'docs/b.md': there is no such file",
        "README.md:3: link to 'docs/a.md#three': a.md has no heading for #three",
        "README.md:3: `src/gone.py` does not exist",
    ]


def test_the_readme_example_as_pasted(here: Path) -> None:
    """The README's application and its five-line test run without Spark."""
    blocks = examples("README.md")
    paste(here, blocks, "retail.py", "test_retail.py")
    import_file(here / "retail.py")
    assert run_tests(import_file(here / "test_retail.py")) == 1


def test_the_readme_output_is_the_slate(here: Path) -> None:
    """Over the README's records the reference gives the slate that the README prints."""
    blocks = examples("README.md")
    paste(here, blocks, "retail.py", "checkins/1.json")
    app: Any = import_file(here / "retail.py").app  # type: ignore[attr-defined]
    records = [json.loads(line) for line in blocks["checkins/1.json"].splitlines()]
    run = ms.testing.run(app, {"checkins": records})
    assert vars(run.slate("count", "Walmart")) == json.loads(blocks["output"])
    assert not run.dead_letters


def test_the_tour_examples_as_pasted(here: Path) -> None:
    """The tour's timers and tables do what the tour says."""
    blocks = examples("docs/tour.md")
    paste(here, blocks, "sessions.py", "test_sessions.py", "history.py")
    import_file(here / "sessions.py")
    assert run_tests(import_file(here / "test_sessions.py")) == 1
    app: Any = import_file(here / "history.py").app  # type: ignore[attr-defined]
    clicks = [{"user": "ann", "time": n, "page": f"/{n}"} for n in range(5)]
    run = ms.testing.run(app, {"clicks": clicks})
    assert list(run.slate("pages", "ann").values()) == ["/2", "/3", "/4"]
    assert not run.dead_letters
