"""`python -m docs.build`: checks the documentation and draws its pictures anew.

Every relative link must lead to a file, and its anchor to a heading of that file; every path under
`src/` in backticks must exist. The picture of the retail example is drawn from the example itself,
and the figures are filled in from the benchmarks' results. Exits 1 with a list of what is wrong.
"""

from __future__ import annotations

import json
import re
import sys
from contextlib import chdir
from pathlib import Path

from bench import ctr_plot
from docs.figures import EVALUATIONS, RESULTS, filled
from docs.page_links import CODE, LINK, OUTSIDE, anchors, lines, root_pages

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "pictures" / "retail.svg"
_SOURCE = re.compile(r"src/[\w./*-]*")


def pages(root: Path = ROOT) -> list[Path]:
    """The pages that are checked."""
    return root_pages(root) + sorted((root / "docs").rglob("*.md"))


def problems(root: Path = ROOT) -> list[str]:
    """What is wrong in the pages below `root`: `page:line: what`."""
    found = []
    known: dict[Path, set[str]] = {}
    for page in pages(root):
        for number, line in lines(page):
            at = f"{page.relative_to(root)}:{number}"
            bare = line if line.startswith("    ") else CODE.sub("", line)
            for link in LINK.finditer(bare):
                wrong = _wrong_link(page, link["target"], known)
                if wrong:
                    found.append(f"{at}: {wrong}")
            for _, code in CODE.findall(line):
                for path in _SOURCE.findall(code):
                    if not any(root.glob(path.rstrip("/."))):
                        found.append(f"{at}: `{path}` does not exist")
    return found


def _wrong_link(page: Path, target: str, known: dict[Path, set[str]]) -> str | None:
    """What is wrong with a link of a page, if anything."""
    if OUTSIDE.match(target):
        return None  # the world is not ours to check
    path, _, fragment = target.partition("#")
    file = (page.parent / path).resolve() if path else page
    if not file.exists():
        return f"link to {target!r}: there is no such file"
    if not fragment or file.suffix != ".md":
        return None
    if file not in known:
        known[file] = anchors(file)
    if fragment not in known[file]:
        return f"link to {target!r}: {file.name} has no heading for #{fragment}"
    return None


def draw(example: str = "examples/retail.py") -> str:
    """The workflow of an example as SVG."""
    from millstream.config import load
    from millstream.graph import svg

    with chdir(ROOT):  # the picture names the functions' lines, relative to where one stands
        return svg(load(example).app.workflow())


def draw_search() -> str:
    """The search of examples/optimise.py for the best parameters."""
    from examples.optimise import app
    from examples.optimising.plot import drawn
    from examples.optimising.simulate import cycles

    return drawn(list(cycles(app, 1)))


def draw_results(results: Path = RESULTS) -> dict[str, str]:
    """The pictures of the benchmarks' results, by their files' names; of those that there are."""
    cases = {page.case: page.pictures for page in EVALUATIONS} | {"ctr": ctr_plot.pictures}
    found: dict[str, str] = {}
    for case, pictures in cases.items():
        path = results / f"{case}.json"
        if path.exists():
            found |= pictures(json.loads(path.read_text()))
    return found


def main() -> int:
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    pictures = {
        PICTURE.name: draw(),
        "ctr.svg": draw("examples/ctr.py"),
        "optimise.svg": draw_search(),
        **draw_results(),
    }
    for name, picture in pictures.items():
        (PICTURE.parent / name).write_text(picture, encoding="utf-8")
        print(f"drew {(PICTURE.parent / name).relative_to(ROOT)}")
    for page in pages():
        text = page.read_text(encoding="utf-8")
        page.write_text(filled(text), encoding="utf-8")
    found = problems()
    for problem in found:
        print(problem, file=sys.stderr)
    print(f"{len(pages())} pages, {len(found) or 'no'} problem{'' if len(found) == 1 else 's'}")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
