"""The Markdown of the pages, as far as links need it: prose lines, anchors of headings, links.

Used by `docs.build`, which checks the links, and by `docs.site_hooks`, which rewrites them for the
site. It needs nothing but the standard library: the site is built without Millstream.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

LINK = re.compile(
    r"!?\[(?P<text>(?:[^\]\\]|\\.)*)\]\(\s*<?(?P<target>[^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)"
)
CODE = re.compile(r"(?P<ticks>`+)(?P<code>.+?)(?P=ticks)")
OUTSIDE = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)
"""How the target of a link to another host starts."""
_FENCE = re.compile(r" {0,3}(```+|~~~+)")
_HEADING = re.compile(r" {0,3}#{1,6}\s+(.*?)\s*#*\s*$")


def root_pages(root: Path) -> list[Path]:
    """The pages beside `docs`, of those that there are."""
    top = [root / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
    return [page for page in top if page.exists()]


def marked_lines(text: Iterable[str]) -> Iterator[tuple[str, bool]]:
    """Each line, and whether it is prose: not in a fenced block, and not its fence."""
    fence = ""
    for line in text:
        mark = _FENCE.match(line)
        yield line, not fence and not mark
        if fence:
            if mark and mark[1].startswith(fence) and not line.strip().strip(fence[0]):
                fence = ""
        elif mark:
            fence = mark[1]


def lines(page: Path) -> Iterator[tuple[int, str]]:
    """The numbered lines of a page that are prose: no fenced blocks."""
    text = page.read_text(encoding="utf-8").splitlines()
    for number, (line, is_prose) in enumerate(marked_lines(text), 1):
        if is_prose:
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
