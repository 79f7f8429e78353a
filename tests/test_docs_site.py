"""The site of the documentation: its navigation has every page, and its links are rewritten.

No site is built here: that needs tools from the network. `make docs` builds it, with every warning
an error.
"""

from __future__ import annotations

import re
from collections import Counter

import pytest

import millstream as ms
from docs.build import ROOT, pages
from docs.site_hooks import API, MOVED, api_markdown, public_names, site_markdown

CONFIG = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")


def navigation() -> list[str]:
    """The entries of the navigation: lines of `mkdocs.yml` as `- page.md` or `- Title: page.md`."""
    return re.findall(r"^ +- (?:.*: )?(\S+\.md)$", CONFIG.split("\nnav:\n")[1], re.MULTILINE)


def test_every_page_is_in_the_navigation_once() -> None:
    """The pages of docs/, those at the root and those of the API are entries, and nothing else."""
    sources = [page.relative_to(ROOT).as_posix() for page in pages()]
    expected = [MOVED.get(source, source.removeprefix("docs/")) for source in sources]
    found, wanted = Counter(navigation()), Counter([*expected, *API])
    assert found == wanted, (
        f"the navigation in mkdocs.yml must have {[*(wanted - found)]} too, and must not have "
        f"{[*(found - wanted)]}"
    )


def test_nothing_is_loaded_from_other_hosts() -> None:
    """No address of a host is in the settings of the site, and fonts are the system's."""
    assert "//" not in CONFIG
    assert re.search(r"^  font: false$", CONFIG, re.MULTILINE)


@pytest.mark.parametrize(
    ("site", "written", "expected"),
    [
        ("index.md", "[a](docs/tour.md#b)", "[a](tour.md#b)"),
        ("index.md", "![a](docs/pictures/live.png)", "![a](pictures/live.png)"),
        ("contents.md", "[a](tour.md)", "[a](tour.md)"),
        ("papers/s4.md", "[a](../README.md#b)", "[a](../contents.md#b)"),
        ("papers/s4.md", "[a](../../CHANGELOG.md)", "[a](../changelog.md)"),
        ("elements/top.md", "[a](README.md), [b](count.md)", "[a](README.md), [b](count.md)"),
        ("tour.md", "[a](../examples/pour.py)", "a, `examples/pour.py`"),
        ("tour.md", "[`examples/pour.py`](../examples/pour.py)", "`examples/pour.py`"),
        ("index.md", "[`app.run`](docs/tour.md)", "[`app.run`](tour.md)"),
        ("index.md", "`[a](docs/tour.md)`", "`[a](docs/tour.md)`"),
        ("index.md", "```\n[a](docs/tour.md)\n```", "```\n[a](docs/tour.md)\n```"),
        ("tour.md", "[a](https://example.com/b), [c](#d)", "[a](https://example.com/b), [c](#d)"),
        ("tour.md", "<!-- example: a.py -->\n[b](kafka.md)", "\n[b](kafka.md)"),
    ],
)
def test_links_are_rewritten(site: str, written: str, expected: str) -> None:
    """Links lead to pages of the site. Other files are named, and code is unchanged."""
    assert site_markdown(written, site) == expected


def test_every_public_name_is_on_a_page_of_the_api() -> None:
    """The names that the sources list are those of the package, each described or linked."""
    assert public_names("millstream") == ms.__all__
    page = api_markdown("api/millstream.md")
    for name in ms.__all__:
        described = f"::: millstream.{name}\n" in page
        assert described != (f"- [`millstream.{name}`](" in page), name


def test_a_function_is_described_rather_than_the_module_of_its_name() -> None:
    """`millstream.algebra.top` is a function and a module."""
    assert "::: millstream.algebra.top.top\n" in api_markdown("api/algebra.md")
