"""`python -m docs.build`: checks the documentation and draws its pictures anew.

Every relative link must lead to a file, and its anchor to a heading of that file; every path under
`src/` in backticks must exist. The picture of the retail example is drawn from the example itself,
and the figures are filled in from the benchmarks' results. Exits 1 with a list of what is wrong.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path

from docs.figures import RESULTS, filled

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "pictures" / "retail.svg"
_FENCE = re.compile(r" {0,3}(```+|~~~+)")
_HEADING = re.compile(r" {0,3}#{1,6}\s+(.*?)\s*#*\s*$")
_LINK = re.compile(r"!?\[(?:[^\]\\]|\\.)*\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)")
_CODE = re.compile(r"(`+)(.+?)\1")
_SOURCE = re.compile(r"src/[\w./*-]*")
_OUTSIDE = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)


def pages(root: Path = ROOT) -> list[Path]:
    """The pages that are checked."""
    top = [root / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
    return [page for page in top if page.exists()] + sorted((root / "docs").rglob("*.md"))


def lines(page: Path) -> Iterator[tuple[int, str]]:
    """The numbered lines of a page that are prose: no fenced blocks."""
    fence = ""
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        mark = _FENCE.match(line)
        if fence:
            if mark and mark[1].startswith(fence) and not line.strip().strip(fence[0]):
                fence = ""
        elif mark:
            fence = mark[1]
        else:
            yield number, line


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them.

    The second heading of the same text gets `-1`, the third `-2`.
    """
    found: set[str] = set()
    seen: Counter[str] = Counter()
    for _, line in lines(page):
        heading = _HEADING.match(line)
        if heading:
            slug = anchor(heading[1])
            found.add(f"{slug}-{seen[slug]}" if seen[slug] else slug)
            seen[slug] += 1
    return found


def anchor(heading: str) -> str:
    """The anchor of a heading.

    >>> anchor("What is *not* promised"), anchor("`app.run`"), anchor("4.1 On [Spark](x.md)")
    ('what-is-not-promised', 'apprun', '41-on-spark')
    """
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")


def problems(root: Path = ROOT) -> list[str]:
    """What is wrong in the pages below `root`: `page:line: what`."""
    found = []
    known: dict[Path, set[str]] = {}
    for page in pages(root):
        for number, line in lines(page):
            at = f"{page.relative_to(root)}:{number}"
            bare = line if line.startswith("    ") else _CODE.sub("", line)
            for target in _LINK.findall(bare):
                wrong = _wrong_link(page, target, known)
                if wrong:
                    found.append(f"{at}: {wrong}")
            for _, code in _CODE.findall(line):
                for path in _SOURCE.findall(code):
                    if not any(root.glob(path.rstrip("/."))):
                        found.append(f"{at}: `{path}` does not exist")
    return found


def _wrong_link(page: Path, target: str, known: dict[Path, set[str]]) -> str | None:
    """What is wrong with a link of a page, if anything."""
    if _OUTSIDE.match(target):
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
    from bench import ctr_plot
    from bench.feeds import plots as feeds_plots
    from bench.imr import plots as imr_plots
    from bench.s4 import plots

    cases = {
        "s4": plots.pictures,
        "imr": imr_plots.pictures,
        "feeds": feeds_plots.pictures,
        "ctr": ctr_plot.pictures,
    }
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
